"""Writers who change animals and orders at random, and what they were told."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from petstore.core.keys import Access
from tests.support.cluster import Client
from tests.support.loops import working
from tests.support.server import Response, issue_key
from tests.support.waiting import pause

ACCOUNTS = 4
_STATUSES = ("available", "pending", "sold")
# Of a hundred changes.
_KINDS = {"add": 40, "change": 25, "remove": 8, "order": 15, "move": 7, "cancel": 5}
_REFUSALS = (404, 409, 412)


def keys_of_accounts(url: str) -> list[str]:
    """A key of level manage for each account, made beside the service."""
    return [
        issue_key(url, f"account{number}", per_minute=10**7, per_day=10**8, access=Access.MANAGE)
        for number in range(1, ACCOUNTS + 1)
    ]


class Writers:
    """Clients that change what they know of, each with the key of an account, at one of `ports`.

    What got no answer is asked for once more with the same Idempotency-Key, or given up: it may be there.
    """

    def __init__(self, ports: Sequence[int], keys: Sequence[str], writers: int, seed: int) -> None:
        self.ports = ports
        self.added: set[int] = set()
        self.removed: set[int] = set()
        self.orders: dict[int, set[int]] = defaultdict(set)  # account -> orders
        self.changes: Counter[str] = Counter()
        self.faults: list[str] = []
        self._keys = keys
        self._writers = writers
        self._seed = seed
        self._begun = 0
        self._known: list[int] = []
        self._lock = threading.Lock()

    def at_work(self) -> AbstractContextManager[None]:
        """Change for the length of a block."""
        return working(*(partial(self._work, number) for number in range(self._writers)))

    def _work(self, number: int, over: threading.Event) -> None:
        writer = _Writer(self, number)
        while not over.is_set():
            writer.change()

    def make(self, changes: int) -> None:
        """Try `changes` changes, one after another."""
        writer = _Writer(self, 0)
        for _ in range(changes):
            writer.change()

    def close(self) -> tuple[str, int]:
        """A last change for each account, that all others come before: its order, and the animal of the last
        one as ("pet.updated", id)."""
        pet = 0
        for number in range(ACCOUNTS):
            writer = _Writer(self, number)
            pet = writer.insist("/v1/pets", {"name": "last", "categoryId": 1}).json()["id"]
            order = writer.insist("/v1/store/orders", {"petId": pet}).json()["id"]
            self.note("order", order, number)
        return "pet.updated", pet

    def last_order(self, account: int) -> tuple[str, int]:
        """The one of `close`."""
        return "order.created", max(self.orders[account])

    def key_of(self, number: int) -> str:
        return self._keys[number % ACCOUNTS]

    def another_chance(self) -> random.Random:
        """The randomness of one more writer: no two send the same Idempotency-Keys."""
        with self._lock:
            self._begun += 1
            return random.Random(f"{self._seed} writer {self._begun}")

    def known(self, chance: random.Random) -> int:
        """An animal, rather a new one; it may be gone."""
        with self._lock:
            return chance.choice(self._known[-50:] if chance.random() < 0.7 else self._known or [1])

    def some_order(self, chance: random.Random, account: int) -> int:
        with self._lock:
            return chance.choice(sorted(self.orders[account])[-20:] or [1])

    def note(self, kind: str, number: int, account: int) -> None:
        """Something was acknowledged."""
        with self._lock:
            self.changes[kind] += 1
            match kind:
                case "add":
                    self.added.add(number)
                    self._known.append(number)
                case "remove":
                    self.removed.add(number)
                case "order":
                    self.orders[account].add(number)


class _Writer:
    def __init__(self, shared: Writers, number: int) -> None:
        self._shared = shared
        self._account = number % ACCOUNTS
        self._chance = shared.another_chance()
        self._clients = {port: Client(port, shared.key_of(number)) for port in shared.ports}

    def change(self) -> None:
        """One try at random."""
        chance, shared = self._chance, self._shared
        (kind,) = chance.choices(list(_KINDS), list(_KINDS.values()))
        if not shared.changes["add"]:
            kind = "add"
        number = shared.known(chance) if shared.changes["add"] else 1
        match kind:
            case "add":
                document = {"name": f"Pet {chance.random()}", "categoryId": chance.randint(1, 5)}
                answer = self._try("POST", "/v1/pets", document)
            case "change":
                answer = self._try("PATCH", f"/v1/pets/{number}", self._some_members())
            case "remove":
                answer = self._try("DELETE", f"/v1/pets/{number}")
            case "order":
                answer = self._try("POST", "/v1/store/orders", {"petId": number})
            case _:
                number = shared.some_order(chance, chance.randrange(ACCOUNTS))
                path = f"/v1/store/orders/{number}"
                status = chance.choice(("approved", "delivered", "cancelled"))
                is_move = kind == "move"
                answer = (
                    self._try("PATCH", path, {"status": status}) if is_move else self._try("DELETE", path)
                )
        if answer is not None and answer.status < 300:
            made = json.loads(answer.body)["id"] if kind in ("add", "order") else number
            shared.note(kind, made, self._account)

    def insist(self, target: str, document: object) -> Response:
        """Ask until it is answered well. Raises AssertionError when it never is."""
        key = str(self._chance.getrandbits(64))
        for _ in range(1_000):
            answer = self._send("POST", target, document, key)
            if answer is not None and answer.status < 300:
                return answer
            pause(0.05)
        raise AssertionError(f"POST {target} is never answered well: {self._shared.faults[-1:]}")

    def _some_members(self) -> dict[str, Any]:
        chance = self._chance
        members = {
            "name": f"Pet {chance.random()}",
            "categoryId": chance.randint(1, 5),
            "status": chance.choice(_STATUSES),
        }
        return {name: members[name] for name in chance.sample(list(members), chance.randint(1, 2))}

    def _try(self, method: str, target: str, document: object = None) -> Response | None:
        key = str(self._chance.getrandbits(64))
        answer = self._send(method, target, document, key)
        if answer is None and method == "POST" and self._chance.random() < 0.5:
            return self._send(method, target, document, key)
        return answer

    def _send(self, method: str, target: str, document: object, key: str) -> Response | None:
        headers = {"Idempotency-Key": key} if method == "POST" else {}
        try:
            answer = self._clients[self._chance.choice(self._shared.ports)](method, target, document, headers)
        except (OSError, http.client.HTTPException):
            pause(0.02)
            return None
        if answer.status == 503:
            pause(0.02)
        elif answer.status >= 300 and answer.status not in _REFUSALS:
            self._shared.faults.append(f"{method} {target}: {answer.status} {answer.body!r}")
        return answer
