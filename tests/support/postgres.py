"""A real PostgreSQL for tests: one server for each test process, a fresh database for each test.

TEST_POSTGRES_URL names a server that is there already. Else one is started from the system's
programs, or from those that the test kit brings. Where there is none, tests skip, and fail when CI is set.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from petstore.core.clock import SystemClock
from petstore.storage.backend import backend_for
from tests.support.machine import absent, need, short_folder
from tests.support.waiting import PATIENCE_SECONDS
from tools.servers import Unusable, find
from tools.servers.ports import free_port
from tools.servers.postgres import Postgres, give_to_nobody

URL_VARIABLE = "TEST_POSTGRES_URL"
# How many statements wait for a lock on something of this database, such as a table; none for a row.
LOCK_WAITS = (
    "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
    " WHERE d.datname = current_database() AND NOT granted"
)
# How many wait for a lock of either kind.
ROW_WAITS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
_numbers = count(1)
_T = TypeVar("_T")


@cache
def programs() -> Path:
    """The folder with PostgreSQL's programs."""
    need("PostgreSQL")
    try:
        return find.postgres(short_folder("pg"))
    except Unusable:
        absent("PostgreSQL")


class PostgresServer(Postgres):
    """A server of the test's own, which it may stop, kill and start again; dropped at the end of `with`."""

    def __init__(self, *settings: str, tcp: bool = False, on_disk: bool = False) -> None:
        folder, self.port = short_folder("pg", on_disk=on_disk), free_port()
        give_to_nobody(folder)
        super().__init__(
            programs(),
            folder,
            folder / "log",
            folder / f".s.PGSQL.{self.port}",
            *(f"port={self.port}", f"unix_socket_directories={folder}"),
            *(f"listen_addresses={'127.0.0.1' if tcp else ''}", *settings),
        )
        self.make("--no-sync", "--auth=trust")

    def follow(self, primary: PostgresServer) -> None:
        """Become its standby, before the first start."""
        shutil.rmtree(self.folder / "data")
        self.run("pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "--dbname", primary.url())

    def url(self, database: str = "postgres", *, tcp: bool = False) -> str:
        """Over its socket, or over TCP."""
        if tcp:
            return f"postgresql://petstore@127.0.0.1:{self.port}/{database}"
        return f"postgresql://petstore@/{database}?host={self.folder}&port={self.port}"

    def start(self) -> Self:
        """Start, and wait until it answers."""
        self.launch()
        self.await_answers()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def drop(self) -> None:
        """Stop for good."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def apart(work: Callable[[], _T]) -> _T:
    """What `work` returns, from a thread of its own: it may run an event loop there."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def run(url: str, sql: str) -> list[tuple[Any, ...]]:
    """What an outside program does: a connection of its own, some statements, the rows of the last SELECT."""

    with shell(url) as execute:
        return execute(sql)


@contextlib.asynccontextmanager
async def outside(url: str, *statements: str, name: str = "") -> AsyncIterator[asyncpg.Connection]:
    """Somebody else's connection for the length of a block, with these statements carried out: BEGIN, and
    what its transaction has done so far. `name`: of its program.
    """
    connection = await asyncpg.connect(url, server_settings={"application_name": name})
    try:
        for statement in statements:
            await connection.execute(statement)
        yield connection
    finally:
        await connection.close()


async def waiting(url: str, count: int, task: asyncio.Task[Any]) -> None:
    """Wait until so many statements wait for a lock, or the task does not."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not task.done() and (await asyncio.to_thread(run, url, ROW_WAITS))[0][0] < count:
            pass


@contextlib.contextmanager
def shell(url: str) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    """That, for many statements over one connection, which the first of them makes, whether or not an event
    loop runs here."""
    connections: list[asyncpg.Connection] = []

    async def work(sql: str) -> list[tuple[Any, ...]]:
        if not connections:
            connections.append(await asyncpg.connect(url, timeout=20))
        if sql.lstrip().upper().startswith(("SELECT", "SHOW", "EXPLAIN")):
            return [tuple(row) for row in await connections[0].fetch(sql)]
        await connections[0].execute(sql)
        return []

    async def end() -> None:
        connections[0].terminate()

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        try:
            yield lambda sql: apart(lambda: loop.run_until_complete(work(sql)))
        finally:
            if connections:
                apart(lambda: loop.run_until_complete(end()))


@cache
def shared_url() -> str:
    """The server of this test process, started at the first call. No test uses its database `postgres`."""
    need("PostgreSQL")
    url = os.environ.get(URL_VARIABLE)
    if url:
        return url
    server = PostgresServer("max_connections=200").start()
    atexit.register(server.drop)
    return server.url()


class _Maintenance:
    """Makes and drops databases of a server over connections that it keeps: each new one costs 10 ms.

    A second one drops, since the server looks only every 100 ms whether the last users are gone.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._connections: dict[str, asyncpg.Connection] = {}
        self._turns = {"make": asyncio.Lock(), "drop": asyncio.Lock()}
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        atexit.register(self._close)

    @cached_property
    def template(self) -> str:
        """The name of a database with the schema of today and nothing in it."""
        name = f"petstore_template_{os.getpid()}"
        self._create(name, "template0")

        async def open_once() -> None:
            store = backend_for(_on(self._url, name)).open(SystemClock())
            await store.is_empty()
            await store.close()

        apart(lambda: asyncio.run(open_once()))
        return name

    def create(self, *, migrated: bool) -> str:
        """The name of a new database."""
        name = f"petstore_test_{os.getpid()}_{next(_numbers)}"
        self._create(name, self.template if migrated else "template0")
        return name

    def drop(self, name: str) -> None:
        """Begin to drop a database, with the connections that are left."""
        self._begin("drop", f"DROP DATABASE {name} WITH (FORCE)")

    def _create(self, name: str, template: str) -> None:
        # Copying files is cheaper than the log of their pages, which releases before 15 did not write.
        [(version,)] = self._begin("make", "SHOW server_version_num").result()
        copied = "STRATEGY file_copy" if int(version) >= 150_000 else ""
        self._begin("make", f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8' {copied}").result()

    def _begin(self, purpose: str, sql: str) -> Future[list[Any]]:
        return asyncio.run_coroutine_threadsafe(self._fetch(purpose, sql), self._loop)

    async def _fetch(self, purpose: str, sql: str) -> list[Any]:
        async with self._turns[purpose]:
            connection = self._connections.get(purpose)
            if connection is None or connection.is_closed():
                connection = self._connections[purpose] = await asyncpg.connect(self._url, timeout=20)
            return await connection.fetch(sql)  # type: ignore[no-any-return]

    def _close(self) -> None:
        for connection in self._connections.values():
            self._loop.call_soon_threadsafe(connection.terminate)


_maintenance = cache(_Maintenance)


@contextlib.contextmanager
def fresh_database(server_url: str | None = None, *, migrated: bool = False) -> Iterator[str]:
    """The URL of a new database, empty or `migrated`; it is dropped afterwards, with the connections that are
    left."""
    url = server_url or shared_url()
    maintenance = _maintenance(url)
    name = maintenance.create(migrated=migrated)
    try:
        yield _on(url, name)
    finally:
        maintenance.drop(name)


def _on(server_url: str, database: str) -> str:
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{database}"))


def listening_address(url: str) -> tuple[str, int] | Path:
    """The address where the server of a URL listens, for a proxy in front of it."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    port = int(query.get("port") or parts.port or 5_432)
    host = query.get("host") or parts.hostname or "127.0.0.1"
    return Path(host) / f".s.PGSQL.{port}" if host.startswith("/") else (host, port)


def by_way_of(url: str, port: int) -> str:
    """The URL of the database through what listens on that port of the loopback."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    rest = [(name, text) for name, text in parse_qsl(parts.query) if name not in ("host", "port")]
    place = f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"
    return urlunsplit(parts._replace(netloc=place, query=urlencode(rest)))


def configure(url: str, setting: str) -> None:
    """Set a setting for connections that are made from now on."""
    run(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET {setting}")


@contextlib.contextmanager
def plain_user(url: str, rights: str = "", *, owns: bool = False) -> Iterator[str]:
    """The address for a new user who has these rights on the tables that are there, while the block runs.

    One who `owns` them loses them at its end.
    """
    role = f"plain_{urlsplit(url).path[1:]}"
    run(url, f"CREATE ROLE {role} LOGIN")
    try:
        if rights:
            run(url, f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {role}")
            run(url, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")
        if owns:
            for (table,) in run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
                run(url, f"ALTER TABLE {table} OWNER TO {role}")
        yield url.replace("petstore@", f"{role}@", 1)
    finally:
        run(url, f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
