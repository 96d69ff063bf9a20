"""Callers that order the same animals at the same moment, and the outcome that there must be."""

from __future__ import annotations

import asyncio
import http.client
import random
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from petstore.core.errors import Conflict, StoreUnavailable
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet
from petstore.storage.store import Store
from tests.support.backends import execute_at, in_store
from tests.support.cluster import Client
from tests.support.journal import ACTOR, history_faults
from tests.support.postgres import fresh_database
from tests.support.report import Report
from tests.support.server import Server, issue_key
from tests.support.valkey import emptied_url
from tests.support.waiting import pause

KINDS = ("sqlite", "postgres")
_ACCOUNTS = 8
_COMMANDS = 4  # callers beside a file's one service, as commands are
_PATIENCE = 1_000  # attempts for each order


class Race:
    """All callers order each animal at once, through the replicas in turn; then they go on to the next one.

    A caller that gets no answer, or a 503, tries again with the same Idempotency-Key until it knows.
    """

    def __init__(self, url: str, replicas: Sequence[Server], callers: int, animals: int, seed: int) -> None:
        self.url = url
        self.replicas = replicas
        self.callers = callers
        self.animals = range(1, animals + 1)
        self.won: dict[int, list[tuple[int, int]]] = defaultdict(list)  # animal -> (order, account)
        self.faults: list[str] = []
        self.requests = self.lost = self.kills = 0
        self._seed = seed
        names = [f"account{number}" for number in range(1, _ACCOUNTS + 1)]
        self._keys = [issue_key(url, name, per_minute=10**7, per_day=10**8) for name in names]
        in_store(url, self._add_animals)
        self._line = threading.Barrier(callers)
        self._left = callers
        self._lock = threading.Lock()

    def run(self, *, kills: bool) -> None:
        """Make all calls; with `kills`, replicas are killed at random moments and started again."""
        beside = _COMMANDS if len(self.replicas) == 1 else 0
        threads = [
            threading.Thread(target=self._call, args=(number, number < beside))
            for number in range(self.callers)
        ]
        for replica in self.replicas:
            replica.start()
        for thread in threads:
            thread.start()
        try:
            while kills and self._left:
                self._kill_one(random.Random(f"{self._seed} {self.kills}"))
        finally:
            if self._left and kills:
                self._line.abort()  # a replica did not start again
            for thread in threads:
                thread.join()
        self.faults += self._disagreements()

    def _kill_one(self, chance: random.Random) -> None:
        longer = 1 + 6 * self.kills / len(self.animals)  # a slow machine comes to an end too
        pause(chance.uniform(0.02, 0.6) * longer)
        replica = chance.choice(self.replicas)
        replica.kill()
        self.kills += 1
        pause(chance.uniform(0, 0.1))
        replica.start()

    async def _add_animals(self, store: Store) -> None:
        for _ in self.animals:
            await store.pets.add(NewPet("Rex", 1), ACTOR)

    def _call(self, number: int, beside: bool) -> None:
        try:
            if beside:
                in_store(self.url, partial(self._work_beside, number))
            else:
                clients = [Client(replica.port, self._keys[number % _ACCOUNTS]) for replica in self.replicas]
                for pet_id in self.animals:
                    self._line.wait()
                    self._order(clients, number, pet_id)
        except threading.BrokenBarrierError:
            pass
        except Exception as error:
            self._fault(f"caller {number}: {type(error).__name__}: {error}")
            self._line.abort()
        finally:
            with self._lock:
                self._left -= 1

    def _order(self, clients: list[Client], number: int, pet_id: int) -> None:
        """Order, and repeat until the answer is known."""
        key = {"Idempotency-Key": f"{self._seed}-{number}-{pet_id}"}
        for attempt in range(_PATIENCE):
            client = clients[(number + attempt) % len(clients)]
            try:
                answer = client("POST", "/v1/store/orders", {"petId": pet_id}, key)
            except (OSError, http.client.HTTPException):
                self._count(lost=1)
                pause(0.02)
                continue
            self._count()
            told = answer.json()
            if answer.status == 201:
                self._win(pet_id, told["id"], number, told["petId"])
                return
            if answer.status == 409 and told["code"] == "conflict":
                return
            if answer.status != 503 and told["code"] != "idempotency_key_in_use":
                self._fault(f"animal {pet_id}: answered {answer.status} {told}")
                return
            pause(0.02)
        self._fault(f"animal {pet_id}: caller {number} never got an answer")

    async def _work_beside(self, number: int, store: Store) -> None:
        """Order as a command does."""
        for pet_id in self.animals:
            await asyncio.to_thread(self._line.wait)
            await self._order_beside(store, number, pet_id)

    async def _order_beside(self, store: Store, number: int, pet_id: int) -> None:
        account = number % _ACCOUNTS + 1
        for _ in range(_PATIENCE):
            self._count()
            try:
                placed = await store.orders.place(account, NewOrder(pet_id), f"cli:{number}")
            except StoreUnavailable:  # the file is busy
                continue
            except Conflict:
                return
            self._win(pet_id, placed.order.id, number, placed.order.pet_id)
            return
        self._fault(f"animal {pet_id}: the store was never free for caller {number}")

    def _count(self, lost: int = 0) -> None:
        with self._lock:
            self.requests += 1
            self.lost += lost

    def _win(self, pet_id: int, order_id: int, number: int, told_pet_id: int) -> None:
        if told_pet_id != pet_id:
            self._fault(f"animal {pet_id}: caller {number} was told an order of animal {told_pet_id}")
        with self._lock:
            self.won[pet_id].append((order_id, number % _ACCOUNTS + 1))

    def _fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text)

    def _disagreements(self) -> Iterator[str]:
        """The things of which answers, orders, animals and the journal say different things."""
        orders = defaultdict(list)
        for pet_id, order_id, account_id, status in self._rows("pet_id, id, account_id, status FROM orders"):
            orders[pet_id].append((order_id, account_id))
            if status != "placed":
                yield f"order {order_id} is {status}"
        statuses = dict(self._rows("id, status FROM pets"))
        entries = self._rows("subject, subject_id, action, actor FROM journal WHERE action <> 'added'")
        written = sorted(entry for entry in entries if entry[0] in ("order", "pet"))
        actors = {subject_id: actor for subject, subject_id, _, actor in written if subject == "order"}
        expected = []
        for pet_id in self.animals:
            if len(self.won[pet_id]) != 1 or orders[pet_id] != self.won[pet_id]:
                yield f"animal {pet_id}: told {self.won[pet_id]}, kept {orders[pet_id]}"
            if statuses[pet_id] != "pending":
                yield f"animal {pet_id} is {statuses[pet_id]}"
            for order_id, _ in orders[pet_id]:
                actor = actors.get(order_id, "nobody")
                expected += [("order", order_id, "placed", actor), ("pet", pet_id, "changed", actor)]
        if written != sorted(expected):
            yield f"the journal has {len(written)} entries, and not the {len(expected)} due by their actors"
        yield from history_faults(lambda sql: self._rows(sql.removeprefix("SELECT ")))

    def _rows(self, what: str) -> list[tuple[Any, ...]]:
        return execute_at(self.url, f"SELECT {what}")


@contextmanager
def prepared(kind: str, folder: Path, callers: int, animals: int, seed: int) -> Iterator[Race]:
    """A race on one service with a file, or on two replicas with PostgreSQL and Valkey."""
    with ExitStack() as made:
        settings: dict[str, Any] = {"access_log": "off"}
        if kind == "sqlite":
            url, replicas = f"sqlite:///{folder}/petstore.db", 1
        else:
            url, replicas = made.enter_context(fresh_database()), 2
            settings |= {"valkey_url": emptied_url()}
        servers = [Server(folder, database_url=url, **settings) for _ in range(replicas)]
        for server in servers:
            made.callback(server.kill)
        yield Race(url, servers, callers, animals, seed)


def play(
    kind: str, folder: Path, report: Report, seed: int, callers: int, animals: int, *, kills: bool
) -> None:
    """One race; what broke a promise is in the report."""
    with prepared(kind, folder, callers, animals, seed) as race:
        race.run(kills=kills)
    report.counts["animals"] += len(race.animals)
    report.counts["attempts"] += race.requests
    report.counts["kills"] += race.kills
    report.counts["answers lost"] += race.lost
    for fault in race.faults[:5]:
        report.fault(f"{kind}, {fault}")
