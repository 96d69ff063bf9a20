"""Upkeep of the database for operators: a check, and the hold of the one service. pg_dump makes backups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import msgspec

from petstore.core.errors import OperatorError
from petstore.storage import reports
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import schema as schemas
from petstore.storage.postgres.connection import connect_first
from petstore.storage.postgres.faults import is_the_drivers, translate_at_start
from petstore.storage.postgres.own_connection import check_files
from petstore.storage.postgres.pool import Connection, close_connection
from petstore.storage.reports import CheckReport

# "serving!" in ASCII: a service that shares no counters holds this lock while it runs.
_SERVING_LOCK = 0x73657276696E6721
_SERVING_WAIT_MS = 2_000  # the service before may be stopping
# The server detects the loss of the holder's machine within a minute, and allows an idle session.
_HOLDER_SETTINGS = {
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "idle_session_timeout": "0",
}
_SET_IF_KNOWN = "SELECT set_config(name, $2, false) FROM pg_settings WHERE name = $1"


# For a command, which opens one connection while another is closing, for the hold of a single service, and
# for the background process with an import.
_KEPT_CONNECTIONS = 5
# What PostgreSQL grants to the user in this database; -1: no bound.
_GRANTED = """
SELECT least(
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0),
  (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
  (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())
)
"""


async def read_connection_room(connection: Connection) -> int:
    """Connections that services may open, so that a command still gets one."""
    return int(await connection.fetchval(_GRANTED)) - _KEPT_CONNECTIONS


async def read_size(connection: Connection) -> int:
    """Bytes of the database on the server's disk."""
    return int(await connection.fetchval("SELECT pg_database_size(current_database())"))


@contextmanager
def held_for_serving(url: str, options: PostgresOptions) -> Iterator[None]:
    """Hold the database for one service that shares no counters, on an idle connection.

    Raises OperatorError when another one holds it. PostgreSQL forgets the holder when it restarts.
    """
    check_files(url)
    with asyncio.Runner() as runner:
        try:
            connection = runner.run(_hold(url, options))
        except Exception as error:
            if is_the_drivers(error):
                raise translate_at_start(error) from error
            raise
        try:
            yield
        finally:
            runner.run(close_connection(connection))


async def _hold(url: str, options: PostgresOptions) -> Connection:
    connection = await connect_first(url, options)
    try:
        for name, text in _HOLDER_SETTINGS.items():
            await connection.execute(_SET_IF_KNOWN, name, text)
        await connection.execute(f"SET lock_timeout = {min(_SERVING_WAIT_MS, options.timeout_ms // 2)}")
        await connection.execute(f"SELECT pg_advisory_lock({_SERVING_LOCK})")
    except asyncpg.LockNotAvailableError:
        await close_connection(connection)
        raise OperatorError(
            "Another service is using the database, and has its counters for itself: stop it first, or give"
            " every service the same PETSTORE_VALKEY_URL."
        ) from None
    except BaseException:
        connection.terminate()
        raise
    return connection


async def check(connection: Connection) -> CheckReport:
    """Count animals, accounts and keys, and report settings of the server that risk data."""
    problems = [
        f"{name} is off: {what}"
        for name, what in (
            ("fsync", "a crash of the machine may damage the database"),
            ("full_page_writes", "a crash of the machine may damage the database"),
            ("synchronous_commit", "a crash may lose what was acknowledged"),
        )
        if await connection.fetchval("SELECT current_setting($1)", name) == "off"
    ]
    schema = await schemas.read(connection)
    report = reports.of_schema(schema, problems)
    if not schema.exists or not schema.is_usable:
        return report
    pets, accounts, keys = await connection.fetchrow(reports.COUNTS)
    return msgspec.structs.replace(report, pets=pets, accounts=accounts, keys=keys)
