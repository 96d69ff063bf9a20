"""Fixtures of the contract: one body of tests for every backend.

A further store is one more id in STORES; a further limiter is one more class and its id in LIMITERS.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import apsw
import pytest

from petstore.core.clock import Clock, SystemClock
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from petstore.core.limits.usage import UsageChanges
from petstore.limiter.memory import MemoryLimiter
from petstore.storage.backend import Backend, backend_for, sqlite_path
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.store import PostgresStore
from petstore.storage.sqlite import schema
from petstore.storage.store import Store
from tests.support import pgbouncer
from tests.support.clock import ManualClock
from tests.support.postgres import apart, fresh_database, run, shell
from tests.support.shared import Replica, Replicas
from tests.support.valkey import emptied_url
from tools.servers.find import system_program

STORES: list[Any] = ["sqlite", "postgres"]
_POOLED = [pytest.param("pgbouncer", marks=pytest.mark.slow)]
if not system_program("pgbouncer") and not os.environ.get("CI"):
    _POOLED = []  # test_pgbouncer.py skips all
of_each_store = pytest.mark.parametrize("backend", STORES, indirect=True)
# The same database by another road, where each transaction gets the next session: for tests that between them
# use each part of a store. What may be kept in a session at all: test_pgbouncer.py.
through_pgbouncer_too = pytest.mark.parametrize("backend", [*STORES, *_POOLED], indirect=True)
_T = TypeVar("_T")
Execute = Callable[[str], list[tuple[object, ...]]]


class SharedData:
    """One database for the contract. Its stores are on the same data, as those of several processes.

    `execute` runs SQL in a transaction of its own, as a SQL shell does. `url` is that of the database itself.
    `exact_versions`: a version moves only when what is cached under it changes, not with every commit.
    """

    def __init__(
        self, url: str, backend: Backend, clock: ManualClock, execute: Execute, *, exact_versions: bool
    ) -> None:
        self.url = url
        self.execute = execute
        self.exact_versions = exact_versions
        self._backend = backend
        self._clock = clock
        self._opened: list[Store] = []

    def open(self) -> Store:
        """Another store on the same data."""
        store = self._backend.open(self._clock)
        self._opened.append(store)
        return store

    async def close(self) -> None:
        """Close all that was opened."""
        for store in self._opened:
            await store.close()


def execute_in_file(path: Path, sql: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    with closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(5_000)
        with connection:
            rows += connection.execute(sql)
    return rows


def execute_at(url: str, sql: str) -> list[tuple[Any, ...]]:
    """What an outside program does in a database of either kind; the rows of a SELECT."""
    return execute_in_file(Path(sqlite_path(url)), sql) if url.startswith("sqlite") else run(url, sql)


@asynccontextmanager
async def opened_store(at: str | Backend, clock: Clock | None = None) -> AsyncIterator[Store]:
    """A store of one's own on a database of either kind, as a command opens it beside a service: at a URL, or
    of a backend with options of its own; by the system's clock unless another one is given.
    """
    store = (backend_for(at) if isinstance(at, str) else at).open(clock or SystemClock())
    try:
        yield store
    finally:
        await store.close()


def in_store(at: str | Backend, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """What `work` does there, whether or not an event loop runs here."""

    async def use() -> _T:
        async with opened_store(at) as store:
            return await work(store)

    return apart(lambda: asyncio.run(use()))


def make_file(path: Path) -> None:
    """An SQLite database as `db migrate` makes it, in a tenth of the time."""
    path.write_bytes(_made_file())


@cache
def _made_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "petstore.db"
        schema.migrate(str(path), 5_000)
        return path.read_bytes()


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a PostgreSQL database of its own, with the schema of today and nothing in it."""
    with fresh_database(migrated=True) as url:
        yield url


async def opened_backend(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> AsyncIterator[SharedData]:
    """The body of a fixture with kinds of STORES as its parameters."""
    with ExitStack() as made:
        if request.param == "sqlite":
            path = tmp_path / "contract.db"
            make_file(path)
            url, execute = f"sqlite:///{path}", partial(execute_in_file, path)
            opened = SharedData(url, backend_for(url), clock, execute, exact_versions=True)
        else:  # through PgBouncer in transaction mode nothing may depend on a session
            url = made.enter_context(fresh_database(migrated=True))
            is_pooled = request.param == "pgbouncer"
            options = PostgresOptions(prepared=not is_pooled)
            through = pgbouncer.pooled(url, in_turns=True) if is_pooled else url
            chosen = backend_for(through, postgres=options)
            opened = SharedData(url, chosen, clock, made.enter_context(shell(url)), exact_versions=False)
        yield opened
        await opened.close()


backend = pytest.fixture(params=STORES)(opened_backend)


@pytest.fixture
def store(backend: SharedData) -> Store:
    return backend.open()


class MemoryBackend:
    """Memory, and a store's counters that it survives by."""

    def __init__(self, store: Store, clock: ManualClock, policy: BanPolicy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self.limiter = MemoryLimiter(clock, policy, store.versions)

    async def take(self, caller: Caller) -> Decision:
        decision = await self.limiter.take(caller)
        assert decision is not None
        return decision

    async def peek(self, caller: Caller) -> Decision:
        decision = await self.limiter.peek(caller)
        assert decision is not None
        return decision

    async def restart(self) -> None:
        """A clean stop of the service and a start."""
        await self._store.counters.save(self.limiter.drain(), UsageChanges())
        now_ms = self._clock.now_ms()
        state = await self._store.counters.load(now_ms, self._policy.matter_since_ms(now_ms))
        self.limiter = MemoryLimiter(self._clock, self._policy, self._store.versions, state)

    async def close(self) -> None:
        pass


class ValkeyBackend:
    """Valkey by a steered clock, with the store's counters behind it where processes share those."""

    def __init__(self, store: Store, clock: ManualClock, policy: BanPolicy) -> None:
        self._policy = policy
        self._replicas = Replicas(emptied_url(), clock, steered=True)
        if isinstance(store, PostgresStore):
            self._replicas.counters = store.counters  # type: ignore[assignment]
        self._replica: Replica | None = None
        self._opening = asyncio.Lock()

    async def take(self, caller: Caller) -> Decision:
        return await (await self._opened()).take(caller)

    async def peek(self, caller: Caller) -> Decision:
        return await (await self._opened()).peek(caller)

    async def _opened(self) -> Replica:
        async with self._opening:
            if self._replica is None:  # `refuse`, so that an outage is seen
                self._replica = await self._replicas.open(refuse=True, policy=self._policy)
        return self._replica

    async def restart(self) -> None:
        """The last process stops and another one starts; Valkey goes on."""
        if self._replica is not None:
            await self._replicas.counters.merge(self._replica.limiter.drain(), UsageChanges())
        await self.close()

    async def close(self) -> None:
        await self._replicas.close()
        self._replica = None


LimiterBackend = MemoryBackend | ValkeyBackend
LIMITERS: dict[str, Callable[[Store, ManualClock, BanPolicy], LimiterBackend]] = {
    "memory": MemoryBackend,
    "valkey": ValkeyBackend,
}


@pytest.fixture(params=sorted(LIMITERS))
def limiter_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of each kind, with nothing in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/petstore.db"
        return
    with fresh_database() as address:
        yield address
