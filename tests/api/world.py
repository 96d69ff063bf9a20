"""A store with something of everything, on either database, and how a request to it is made.

Two accounts, keys of every level, animals in every state, orders in every state of both accounts, webhooks of
both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import apsw

from petstore.core.keys import Access, mint
from petstore.transactions.rows import TABLES
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database, shell
from tests.support.service import COUNTERS, Answer, Shop, application_for
from tests.support.valkey import emptied_url

BACKENDS = ["sqlite", "postgres+valkey"]
# Animals and orders of the world by their state, for the targets of calls.
AVAILABLE, PENDING, SOLD, SPARE = 1, 2, 3, 4
PLACED, APPROVED, DELIVERED, CANCELLED, FOREIGN = 1, 2, 3, 4, 5
HELD, RESERVED = 5, 6  # the animals of the orders PLACED and APPROVED
MISSING = 999
PETS, ORDERS, EVENTS, WEBHOOKS = "/v1/pets", "/v1/store/orders", "/v1/events", "/v1/webhooks"
ENABLED, DISABLED, FOREIGN_WEBHOOK = 1, 2, 3
URL = "https://shop.example/hook"
# What was posted once to each of these, with its Idempotency-Key.
POSTED: dict[str, dict[str, object]] = {
    PETS: {"name": "again", "categoryId": 1},
    ORDERS: {"petId": 10},
    WEBHOOKS: {"url": URL},
}


Execute = Callable[[str], list[tuple[Any, ...]]]


class Call(NamedTuple):
    """One request. `level` chooses a key of World.keys; with another word there is no key."""

    method: str
    target: str
    document: object = None
    level: str = "manage"
    headers: tuple[tuple[str, str | None], ...] = ()
    body: bytes | None = None  # instead of the document

    def __str__(self) -> str:
        sent = "" if self.document is None else f" {json.dumps(self.document)}"
        body = "" if self.body is None else f" {self.body[:200]!a}"
        return f"{self.level} {self.method} {self.target[:200]}{sent}{body} {self.headers!a:.200}"


def repeated(target: str, document: object = None) -> Call:
    """The POST that was made once to the target; with another document if one is given."""
    return Call("POST", target, document or POSTED[target], headers=(("idempotency-key", target),))


def making() -> Iterator[tuple[int, Call]]:
    """The requests that make what the constants name, with the statuses of their answers."""
    for number, status in enumerate(("available", "pending", "sold", *["available"] * 6), 1):
        yield 201, Call("POST", PETS, {"name": f"n{number}", "categoryId": 1, "status": status})
    for pet_id, by in enumerate(["write"] * 4 + ["other"], HELD):
        yield 201, Call("POST", ORDERS, {"petId": pet_id}, by)
    for order_id, states in (
        (APPROVED, ["approved"]),
        (DELIVERED, ["approved", "delivered"]),
        (CANCELLED, ["cancelled"]),
    ):
        for state in states:
            yield 200, Call("PATCH", f"{ORDERS}/{order_id}", {"status": state})
    for by in ("write", "write", "other"):
        yield 201, Call("POST", WEBHOOKS, {"url": URL}, by)
    yield 200, Call("PATCH", f"{WEBHOOKS}/{DISABLED}", {"enabled": False})
    for target in POSTED:
        yield 201, repeated(target)


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace("{" + name + "}", word)
    return text


class World:
    """The store. `keys` has the secrets by level, and those that open nothing."""

    def __init__(self, shop: Shop, execute: Execute) -> None:
        self.shop = shop
        self.keys: dict[str, str] = {}
        self.actors: dict[str, str] = {}
        self.event_id = ""
        self._unknown = mint("test")
        self._execute = execute

    def copy(self, first: World) -> None:
        """Know what another one has made, of which the database is a copy."""
        self.keys, self.actors, self.event_id = first.keys, first.actors, first.event_id
        self.shop.key, self.shop.key_id = first.shop.key, first.shop.key_id

    async def fill(self) -> None:
        """Make what the constants name."""
        for account in ("own", "other"):
            self.shop.key, self.shop.key_id = await self.shop.open_account(
                account, "enterprise", 10**6, 10**7
            )
        self._note("other", self.shop.key_id, "other", self.shop.key)
        for level in Access:
            issued = await self.shop.store.keys.issue("own", "test", ACTOR, access=level)
            self._note(level.value, issued.record.id, "own", issued.secret)
        revoked = await self.shop.store.keys.issue("own", "test", ACTOR)
        await self.shop.store.keys.revoke(revoked.record.id, ACTOR)
        self._note("revoked", revoked.record.id, "own", revoked.secret)
        for account in ("suspended", "used-up"):
            secret, key_id = await self.shop.open_account(account, "enterprise", 10, 1, Access.MANAGE)
            await self.shop.ask("GET", PETS, key=secret)
            self._note(account, key_id, account, secret)
        await self.shop.store.accounts.suspend("suspended", ACTOR)
        for status, call in making():
            await self.must(status, call)
        self.event_id = (await self.ask(Call("GET", f"{EVENTS}?type=pet.created&limit=1"))).json()[0]["id"]

    def _note(self, level: str, key_id: int, account: str, secret: str) -> None:
        self.keys[level] = secret
        self.actors[level] = f"api:{account}/key {key_id}"

    async def must(self, status: int, call: Call) -> None:
        answer = await self.ask(call)
        assert answer.status == status, (str(call), answer.body)

    async def ask(self, call: Call) -> Answer:
        """The answer to a call. `{key}` in target and headers is a key; other words are made of it. `{event}`
        is the id of an event that every account sees."""
        body = call.body
        if body is None:
            body = b"" if call.document is None else json.dumps(call.document).encode()
        words = self._words()
        pairs = [(name, value and _filled(value, words)) for name, value in call.headers]
        given = {name for name, _ in pairs}
        if call.level in self.keys:
            pairs.append(("authorization", f"Bearer {self.keys[call.level]}"))
        if (call.body is not None or body) and "content-type" not in given:
            pairs.append(("content-type", "application/json"))
        return await self.shop.call(call.method, _filled(call.target, words), pairs, body)

    def _words(self) -> dict[str, str]:
        key = self.keys["manage"]
        return {
            "key": key,
            "event": self.event_id,
            "wrong": key[:-1] + ("A" if key[-1] != "A" else "B"),
            "short": key[:-1],
            "upper": key.upper(),
            "swapped": key.swapcase(),
            "unknown": self._unknown,
            "tail": key[10:],
            "rest": key[4:],
            "digest": hashlib.sha256(key.encode()).hexdigest(),
        }

    def entries(self) -> list[tuple[str, str]]:
        """(type, actor) of each entry of the journal, in order."""
        rows = self._execute("SELECT subject, action, actor FROM journal ORDER BY id")
        return [(f"{subject}.{action}", actor) for subject, action, actor in rows]

    def fingerprint(self) -> str:
        """A hash of all rows of all tables but the counters."""
        whole = hashlib.sha256()
        for table in TABLES:
            if table.name not in COUNTERS:
                columns = ", ".join(table.columns)
                rows = self._execute(f"SELECT {columns} FROM {table.name} ORDER BY {table.order}")
                whole.update(repr((table.name, rows)).encode())
        return whole.hexdigest()


_made: dict[str, tuple[bytes, World]] = {}


@asynccontextmanager
async def open_world(backend: str, folder: Path, *, stage: str = "") -> AsyncIterator[World]:
    """The world on a fresh database of the backend. To copy a file of SQLite takes a tenth of filling it."""
    if backend != "sqlite":
        async with _open(backend, folder, stage) as world:
            yield world
        return
    if stage not in _made:
        with TemporaryDirectory() as first:
            async with _open(backend, Path(first), stage) as world:
                pass
            _made[stage] = (Path(first) / "petstore.db").read_bytes(), world
    content, filled = _made[stage]
    (folder / "petstore.db").write_bytes(content)
    async with _open(backend, folder, stage, filled) as world:
        yield world


@asynccontextmanager
async def _open(backend: str, folder: Path, stage: str, filled: World | None = None) -> AsyncIterator[World]:
    clock = ManualClock()
    with ExitStack() as made:
        path = folder / "petstore.db"
        settings = {"stage": stage, "webhook_proxy": "http://127.0.0.1:1"}  # nobody listens there
        execute: Execute
        if backend != "sqlite":
            url = made.enter_context(fresh_database(migrated=True))
            settings |= {"database_url": url, "valkey_url": emptied_url()}
            execute = made.enter_context(shell(url))
        application = application_for(path, clock, settings)
        shop = Shop(application, clock, path, steers_counters=backend == "sqlite")
        await shop.application.start()
        if backend == "sqlite":  # one connection: to open one takes longer than to read a table
            connection = made.enter_context(closing(apsw.Connection(str(path))))
            execute = lambda sql: list(connection.execute(sql))  # noqa: E731
        try:
            world = World(shop, execute)
            if filled is None:
                await world.fill()
            else:
                world.copy(filled)
            shop.application.service.waits.end()  # a test of a webhook is answered at once
            yield world
        finally:
            await shop.application.stop()
