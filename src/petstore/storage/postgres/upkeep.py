"""Upkeep of the database for operators: its schema, and a check. Backups are pg_dump's affair."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import asyncpg

from petstore.errors import ConfigurationError, Conflict, StoreUnavailable
from petstore.storage import migrations
from petstore.storage.migrations import Migration
from petstore.storage.postgres.connection import Tuning, connect
from petstore.storage.postgres.faults import is_the_drivers, translate_at_start
from petstore.storage.postgres.pool import Connection
from petstore.storage.reports import CheckReport

MIGRATIONS_PACKAGE = "petstore.storage.postgres.migrations"
_OLDEST = 130_000  # the first that tells its snapshots
# "petstore" in ASCII: whoever migrates holds this lock until the end of its transaction.
_LOCK = 0x70657473746F7265
_LOCK_WAIT = "60s"
_CREATE_VERSIONS = (
    "CREATE TABLE IF NOT EXISTS schema_migrations (number integer PRIMARY KEY, name text NOT NULL,"
    " ran_at timestamptz NOT NULL DEFAULT now())"
)
_ADD_VERSION = "INSERT INTO schema_migrations (number, name) VALUES ($1, $2)"
# "serving!" in ASCII: a service whose counters are its own holds this lock as long as it runs.
_SERVING_LOCK = 0x73657276696E6721
_SERVING_WAIT_MS = 2_000  # the service before may just be going
# The server finds out within a minute that the machine of the one who holds it is gone, and minds no silence.
_HOLDER_SETTINGS = {
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "idle_session_timeout": "0",
}
_SET_IF_KNOWN = "SELECT set_config(name, $2, false) FROM pg_settings WHERE name = $1"
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_T = TypeVar("_T")


def migrate(url: str, tuning: Tuning) -> list[str]:
    """Bring the schema up to date, one transaction for each step; the names of the steps that ran.

    Any number of processes may do so at once. Raises ConfigurationError for a schema that is too new.
    """
    _check_files(url)
    return _apart(_migrate(url, tuning))


def is_made(url: str, tuning: Tuning) -> bool:
    """Whether the database holds a schema of ours, complete or not."""
    _check_files(url)
    return _apart(_is_made(url, tuning))


def check(url: str, tuning: Tuning) -> CheckReport:
    """Count what is there, and say what is wrong with it or with how the server keeps it."""
    _check_files(url)
    return _apart(_check(url, tuning))


@contextmanager
def held_for_serving(url: str, tuning: Tuning) -> Iterator[None]:
    """Hold the database for one service whose counters are its own, on an idle connection.

    Raises Conflict when another one holds it. PostgreSQL forgets the holder when it restarts.
    """
    _check_files(url)
    with asyncio.Runner() as runner:
        try:
            connection = runner.run(_hold(url, tuning))
        except Exception as error:
            if is_the_drivers(error):
                raise translate_at_start(error) from error
            raise
        try:
            yield
        finally:
            runner.run(_close(connection))


async def _hold(url: str, tuning: Tuning) -> Connection:
    connection = await connect(url, tuning)
    try:
        for name, text in _HOLDER_SETTINGS.items():
            await connection.execute(_SET_IF_KNOWN, name, text)
        await connection.execute(f"SET lock_timeout = {min(_SERVING_WAIT_MS, tuning.timeout_ms // 2)}")
        await connection.execute(f"SELECT pg_advisory_lock({_SERVING_LOCK})")
    except asyncpg.LockNotAvailableError:
        await _close(connection)
        raise Conflict(
            "Another service is using the database, and has its counters for itself: stop it first, or give"
            " every service the same PETSTORE_VALKEY_URL."
        ) from None
    except BaseException:
        connection.terminate()
        raise
    return connection


def _check_files(url: str) -> None:
    """Of the files that the address names, none may be missing: the driver would call that an outage."""
    for name, path in parse_qsl(url.partition("?")[2]):
        if name in _FILES and not Path(path).is_file():
            raise ConfigurationError(f"PETSTORE_DATABASE_URL: there is no file {path}, which is its {name}.")


def _apart(work: Coroutine[Any, Any, _T]) -> _T:
    """Run it to its end in a thread with an event loop of its own: the caller may be in one already."""
    outcome: list[_T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = Thread(target=run, name="petstore-upkeep")
    thread.start()
    thread.join()
    if failure:
        error = failure[0]
        if isinstance(error, Exception) and is_the_drivers(error):
            raise translate_at_start(error) from error
        raise error
    return outcome[0]


async def _migrate(url: str, tuning: Tuning) -> list[str]:
    known = migrations.load(MIGRATIONS_PACKAGE)
    connection = await connect(url, tuning)
    try:
        await _check_server(connection)
        todo = migrations.pending(known, await _schema_version(connection))
    finally:
        await _close(connection)
    return await _run_steps(url, tuning, known) if todo else []


async def _run_steps(url: str, tuning: Tuning, known: list[Migration]) -> list[str]:
    """A step may take longer than any statement of the service; only its waiting for others is bounded."""
    connection = await connect(url, tuning, bounded=False)
    ran = []
    try:
        while todo := migrations.pending(known, await _schema_version(connection)):
            step = todo[0]
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
                await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
                # Also tells the session what others have created meanwhile: the lock alone does not.
                await connection.execute(_CREATE_VERSIONS)
                if await _schema_version(connection) == step.number - 1:  # else another one was quicker
                    await connection.execute(step.sql)
                    await connection.execute(_ADD_VERSION, step.number, step.name)
                    ran.append(f"{step.number:04}_{step.name}")
    finally:
        await _close(connection)
    return ran


async def _is_made(url: str, tuning: Tuning) -> bool:
    connection = await connect(url, tuning)
    try:
        return await _schema_version(connection) > 0
    finally:
        await _close(connection)


async def _check_server(connection: Connection) -> None:
    version = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
    if version < _OLDEST:
        raise ConfigurationError(f"PostgreSQL {version // 10_000} is too old; use 13 or newer.")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The database is encoded in {encoding}, which can't hold every name;"
            " create it with ENCODING 'UTF8' TEMPLATE template0."
        )


async def _schema_version(connection: Connection) -> int:
    """The number of the last migration that ran; 0 before the first."""
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return 0
    return int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM schema_migrations"))


async def _check(url: str, tuning: Tuning) -> CheckReport:
    connection = await connect(url, tuning, bounded=False)
    try:
        problems = [
            f"{name} is off: {what}"
            for name, what in (
                ("fsync", "a crash of the machine may damage the database"),
                ("full_page_writes", "a crash of the machine may damage the database"),
                ("synchronous_commit", "a crash may lose what was acknowledged"),
            )
            if await connection.fetchval("SELECT current_setting($1)", name) == "off"
        ]
        version = await _schema_version(connection)
        if version == 0:
            return CheckReport(0, 0, 0, 0, [*problems, "the schema was never created"])
        try:
            migrations.pending(migrations.load(MIGRATIONS_PACKAGE), version)
        except ConfigurationError as error:  # it can't be served, and its tables may be others
            return CheckReport(version, 0, 0, 0, [*problems, str(error).rstrip(".")])
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            pets, accounts, keys = [
                await connection.fetchval(f"SELECT count(*) FROM {table}")
                for table in ("pets", "accounts", "api_keys")
            ]
        return CheckReport(version, pets, accounts, keys, problems)
    finally:
        await _close(connection)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=1)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, StoreUnavailable):
        connection.terminate()
