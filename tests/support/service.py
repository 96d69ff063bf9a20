"""The production service in process: the same `service.build`, a real SQLite file, real keys.

Each answer under /v1 is checked whole as it arrives.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from petstore import config
from petstore.core.keys import Access
from petstore.core.limits.plans import QUOTA_MAX, WINDOWS, resolve_plan
from petstore.http.exchange import Exchange
from petstore.storage.sqlite.reserve import BYTES
from petstore.wiring.application import Application
from tests.support import contract
from tests.support.answers import check_answer, is_interface
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tools.exchanges import Feed, arriving, send

Pairs = Sequence[tuple[str, str | None]]  # None: without this header


class Answer:
    """What came back: status, headers as sent (names in lower case, repeated ones kept), body."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self.raw_headers = [(name.decode("ascii"), value.decode("ascii")) for name, value in headers]
        self.headers = dict(self.raw_headers)
        self.body = body

    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def content(self) -> bytes:
        """The body without its coding."""
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    @property
    def code(self) -> str:
        """The Error's code."""
        return str(self.json()["code"])

    @property
    def links(self) -> dict[str, str]:
        """Link references by relation."""
        found = {}
        for part in self.headers.get("link", "").split(", <"):
            reference, _, parameters = part.lstrip("<").partition(">")
            relation = parameters.partition('rel="')[2].partition('"')[0]
            if relation:
                found[relation] = reference
        return found


async def call(
    application: Callable[[Exchange], None],
    method: str,
    target: str | bytes,
    headers: Pairs = (),
    body: bytes | Feed = b"",
    client: str = "127.0.0.1",
) -> Answer:
    """One request, exactly as given: nothing is normalised, escaped or added but a Host header.

    Give `("host", ...)` yourself to say something about Host; `("host", None)` sends none.
    """
    raw = target.encode("utf-8") if isinstance(target, str) else target
    pairs = [(name.lower(), value) for name, value in headers]
    if not any(name == "host" for name, _ in pairs):
        pairs.insert(0, ("host", "testserver"))
    encoded = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in pairs if v is not None]
    return Answer(*await send(application, method, raw, encoded, body, client))


class Shop:
    """A running service with one account of a large quota, and a client for its key of the level manage.

    `steers_counters`: they go by `clock`, not by Valkey's own. A 500 fails a test that does not expect it.
    """

    expects_500 = False

    def __init__(
        self, application: Application, clock: ManualClock, path: Path, *, steers_counters: bool = True
    ) -> None:
        self.application = application
        self.steers_counters = steers_counters
        self.clock = clock
        self.path = path
        self.key = ""
        self.key_id = 0

    @property
    def store(self) -> Any:
        return self.application.service.store

    async def index(self) -> None:
        """Put into the index of searches what is stored, as the background process does."""
        while await self.store.search.step():
            pass

    async def open_account(
        self,
        name: str,
        plan: str = "free",
        per_minute: int | None = None,
        per_day: int | None = None,
        access: Access = Access.WRITE,
    ) -> tuple[str, int]:
        """A new account with one key: (key, key id)."""
        agreed = {"minute": per_minute, "day": per_day}
        limits = [agreed.get(kind.name, None if per_day is None else QUOTA_MAX) for kind in WINDOWS]
        await self.store.accounts.add(name, resolve_plan(plan, *limits), ACTOR)
        issued = await self.store.keys.issue(name, "test", ACTOR, access=access)
        return issued.secret, issued.record.id

    async def call(
        self,
        method: str,
        target: str | bytes,
        headers: Pairs = (),
        body: bytes | Feed = b"",
        client: str = "127.0.0.1",
    ) -> Answer:
        """One request without a key."""
        answer = await call(self.application, method, target, headers, body, client)
        self.inspect(method, target, answer)
        return answer

    def inspect(self, method: str, target: str | bytes, answer: Answer) -> None:
        """Check an answer; no header and no body has the key of the shop."""
        raw = target.encode("utf-8") if isinstance(target, str) else target
        if is_interface(raw.partition(b"?")[0]):
            contract.document()  # our code makes it
            check_answer(method, raw, answer, self.clock.now_ms() if self.steers_counters else None)
            assert not self.key or self.key not in answer.content.decode() + str(answer.raw_headers)
            assert answer.status != 500 or self.expects_500

    async def ask(
        self, method: str, target: str | bytes, headers: Pairs = (), *, key: str | None = None
    ) -> Answer:
        """One request with a key (the shop's own unless given)."""
        return await self.call(method, target, [("authorization", f"Bearer {key or self.key}"), *headers])

    async def post(
        self, document: object, headers: Pairs = (), *, key: str | None = None, body: bytes | None = None
    ) -> Answer:
        """POST /v1/pets with a JSON document (or raw `body`)."""
        return await self.send("POST", "/v1/pets", document, headers, key=key, body=body)

    async def send(
        self,
        method: str,
        target: str,
        document: object,
        headers: Pairs = (),
        *,
        key: str | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """One request with a key and a JSON document (or raw `body`)."""
        content = json.dumps(document).encode() if body is None else body
        sent = [
            ("authorization", f"Bearer {key or self.key}"),
            ("content-type", "application/json"),
            *headers,
        ]
        return await self.call(method, target, sent, content)

    async def patch(
        self, pet_id: object, document: object, headers: Pairs = (), *, key: str | None = None
    ) -> Answer:
        """PATCH /v1/pets/{petId} with a JSON document."""
        return await self.send("PATCH", f"/v1/pets/{pet_id}", document, headers, key=key)

    async def stall(
        self, method: str, target: str, headers: Pairs = (), pieces: Sequence[bytes] = ()
    ) -> Answer:
        """One request whose body stops after some pieces and never ends, on a connection that stays."""
        return await self.call(method, target, headers, arriving(pieces, ends=False))

    def fingerprint(self) -> str:
        """A hash of all rows of all tables but the counters: equal after a request that changed nothing."""
        whole = hashlib.sha256()
        with outsider(self.path) as connection:
            names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1"
            for (table,) in connection.execute(names).fetchall():
                if table not in COUNTERS:
                    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
                    whole.update(repr((table, rows)).encode())
        return whole.hexdigest()

    def pets(self) -> list[tuple[Any, ...]]:
        """The rows of animals as they are in the file."""
        with outsider(self.path) as connection:
            return connection.execute("SELECT id, name, category_id, status FROM pets ORDER BY id").fetchall()

    async def restart(self) -> None:
        """A clean stop and a start on the same file."""
        await self.application.stop()
        await self.application.start()


@asynccontextmanager
async def open_shop(folder: Path, clock: ManualClock | None = None, **settings: str) -> AsyncIterator[Shop]:
    """Settings are given by their name in lower case, as text. Where they name no database, it begins with a
    copy of a shop that was opened once."""
    clock = clock or ManualClock()
    path = folder / "petstore.db"
    application = application_for(path, clock, settings)
    copied = None if "database_url" in settings else await copy_opened(path)
    await application.start()
    try:
        shop = Shop(application, clock, path, steers_counters="valkey_url" not in settings)
        shop.key, shop.key_id = copied or await shop.open_account(*_ACCOUNT)
        yield shop
    finally:
        await application.stop()


# Written in batches by the flusher; what they count comes from quota.py and is tested by the headers.
COUNTERS = {"account_windows", "key_standings", "key_activity", "usage_days", "refusals"}
_ACCOUNT = ("tests", "enterprise", 1_000_000, 10_000_000, Access.MANAGE)
_opened: list[tuple[bytes, str, int]] = []


async def copy_opened(path: Path) -> tuple[str, int]:
    """Write a fresh shop's database there: its key, and the key's id. To make one takes 7 ms more."""
    if not _opened:
        with TemporaryDirectory() as folder:
            first = Path(folder) / "petstore.db"
            async with open_shop(Path(folder), database_url=f"sqlite:///{first}") as shop:
                key, key_id = shop.key, shop.key_id
            _opened.append((first.read_bytes(), key, key_id))
    content, key, key_id = _opened[0]
    path.write_bytes(content)  # noqa: ASYNC240  in memory
    with path.with_name(f"{path.name}.reserve").open("xb") as reserve:
        reserve.truncate(BYTES)  # to fill them takes 2 ms
    return key, key_id


def application_for(path: Path, clock: ManualClock, settings: Mapping[str, str]) -> Application:
    """The production application on a file, by settings named in lower case."""
    values = {"database_url": f"sqlite:///{path}", "access_log": "off", **settings}
    return Application(
        config.load({f"PETSTORE_{name.upper()}": text for name, text in values.items()}), clock
    )


async def settle() -> None:
    """Let every task run until it waits for something outside the event loop."""
    for _ in range(10):
        await asyncio.sleep(0)


@contextmanager
def outsider(path: Path) -> Iterator[apsw.Connection]:
    """A connection of somebody else, such as another process or a SQL shell."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    try:
        yield connection
    finally:
        connection.close()
