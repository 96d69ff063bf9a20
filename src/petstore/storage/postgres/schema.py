"""The database's schema: its versions, its creation, its migration."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import asyncpg

from petstore.core.errors import ConfigurationError
from petstore.storage import migrations
from petstore.storage.migrations import DatabaseSchema, Migration
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import blockers
from petstore.storage.postgres.own_connection import on_connection
from petstore.storage.postgres.pool import Connection
from petstore.transactions.stages import HAS_LIVE_KEYS, STAMP

MIGRATIONS_PACKAGE = "petstore.storage.postgres.migrations"
_OLDEST_SERVER = 130_000  # the first with pg_current_snapshot()
# "petstore" in ASCII: an advisory lock that a migration holds until its transaction ends.
_LOCK = 0x70657473746F7265
_LOCK_WAIT = "60s"
# Short, because queries of a running service queue up behind a step that waits for its table.
_TABLE_WAIT = "2s"
# client_connection_check_interval: a step whose process died is cancelled and its locks are freed.
# PostgreSQL 13 and servers on Windows do not have it.
_CHECK_INTERVAL = "1s"
# Classes of SQLSTATE for a faulty step (data, constraint, syntax), apart from missing privileges.
_REFUSED = ("22", "23", "42")
_NO_RIGHT = "42501"
# The greatest number in schema_migrations is the schema's `oldest`: programs from before that rule look
# there and refuse a greater one than they know. schema_steps has the steps themselves. PUBLIC may read it: a
# service that is not the owner has rights on the tables of the version before only.
_CREATE_NOTES = """
CREATE TABLE IF NOT EXISTS schema_migrations (number integer PRIMARY KEY, name text NOT NULL,
    ran_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS schema_steps (number integer PRIMARY KEY, name text NOT NULL,
    oldest integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
GRANT SELECT ON schema_steps TO PUBLIC
"""
_ADD_STEP = "INSERT INTO schema_steps (number, name, oldest) VALUES ($1, $2, $3)"
_NOTE_OLDEST = "INSERT INTO schema_migrations (number, name) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_EXIST = (
    "SELECT to_regclass('schema_migrations') IS NOT NULL, to_regclass('schema_steps') IS NOT NULL, EXISTS"
    " (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('data_set') AND attname = 'stage')"
)


async def read(connection: Connection) -> DatabaseSchema:
    """The versions that the database records."""
    has_oldest, has_steps, has_stage = await connection.fetchrow(_EXIST)
    oldest, last, stage = 0, 0, None
    if has_oldest:
        oldest = await connection.fetchval("SELECT coalesce(max(number), 0) FROM schema_migrations")
    if has_steps:
        last = await connection.fetchval("SELECT coalesce(max(number), 0) FROM schema_steps")
    if has_stage:
        stage = await connection.fetchval(STAMP.postgres)
    has_live_keys = False
    if oldest and not stage:
        has_live_keys = await connection.fetchval(HAS_LIVE_KEYS.postgres)
    known = migrations.load(MIGRATIONS_PACKAGE)
    return DatabaseSchema(max(oldest, last), oldest, known, stage or "", has_live_keys)


def prepare(url: str, options: PostgresOptions) -> None:
    """Create a missing schema. Raises ConfigurationError for one that must be migrated first, for one that
    needs a newer program, for data of another stage, and for a server that can't be used.
    """
    schema = on_connection(url, options, _read_usable)
    schema.check_stage(options.stage)
    if schema.exists:
        schema.check_current()
    else:
        migrate(url, options)


def migrate(
    url: str, options: PostgresOptions, applied: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Bring the schema up to date, one transaction for each step; the names of the steps that ran.

    An empty database gets all of them in one, so that no process sees it half made. `applied` is called after
    each step. Several processes may call this at once. Raises ConfigurationError when the schema needs a
    newer program, StoreUnavailable with the sessions that hold a table when a step waits for them too long.
    """
    schema = on_connection(url, options, _read_usable)
    schema.check_stage(options.stage)
    pending = schema.pending()
    if not pending:
        return []
    ran: list[str] = []

    async def run(connection: Connection) -> None:
        try:
            while steps := await _run_next(connection):
                ran.extend(steps)
                for step in steps:
                    applied(step)
        except asyncpg.LockNotAvailableError as error:
            found = await blockers.find(connection, _LOCK, _TABLE_WAIT)
            raise migrations.held_up(found, len(ran), len(pending)) from error

    # A step may take longer than any statement of the service; only its waiting for others is bounded.
    on_connection(url, options, run, bounded=False)
    return ran


async def _run_next(connection: Connection) -> list[str]:
    """Run one step, or in an empty database all; none when another process did."""
    # Against other defaults of the database: each statement sees earlier commits, and has no timeout.
    async with connection.transaction(isolation="read_committed"):
        await connection.execute(f"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
        with suppress(asyncpg.PostgresError):
            async with connection.transaction():  # a savepoint, since the setting may be unknown
                await connection.execute(f"SET LOCAL client_connection_check_interval = '{_CHECK_INTERVAL}'")
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        # This also refreshes the session's catalogue; the lock alone does not.
        await connection.execute(_CREATE_NOTES)
        schema = await read(connection)
        todo = schema.pending()
        if schema.exists:
            todo = todo[:1]
        await connection.execute(f"SET LOCAL lock_timeout = '{_TABLE_WAIT}'")
        for step in todo:
            await _run(connection, step)
            await connection.execute(_ADD_STEP, step.number, step.name, step.oldest)
            await connection.execute(_NOTE_OLDEST, step.oldest, step.name)
    return [step.title for step in todo]


async def _run(connection: Connection, step: Migration) -> None:
    try:
        await connection.execute(step.sql)
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        if state[:2] in _REFUSED and state != _NO_RIGHT:
            raise migrations.failed(step, str(error)) from error
        raise


async def _read_usable(connection: Connection) -> DatabaseSchema:
    """The schema. Raises ConfigurationError for an old server or another encoding than UTF-8."""
    version = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
    if version < _OLDEST_SERVER:
        raise ConfigurationError(f"PostgreSQL {version // 10_000} is too old; use 13 or newer.")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The database is encoded in {encoding}, which can't hold every name;"
            " create it with ENCODING 'UTF8' TEMPLATE template0."
        )
    return await read(connection)
