"""The database of the settings for a command, and its store beside running servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.errors import (
    ConfigurationError,
    OperatorError,
    StoreDamaged,
    StoreReadOnly,
    StoreUnavailable,
)
from petstore.core.stages import Stage
from petstore.core.staging import Content
from petstore.core.versions import LEASE_SECONDS, LeaseWaitPublisher, Publisher
from petstore.storage import backend as backends
from petstore.storage.backend import Backend
from petstore.storage.observer import MigrationObserver
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.reports import CheckReport, Contents
from petstore.storage.sqlite.backend import SqliteBackend
from petstore.storage.store import Store

if TYPE_CHECKING:
    from petstore.limiter.valkey.inspection import CountersReport
    from petstore.storage.copying import CopiedTable

__all__ = ["Backend", "CheckReport", "Contents", "SqliteBackend", "Store"]


def backend_of(settings: Settings, *, reads_only: bool = False) -> Backend:
    """The database of the settings, with `reads_only` one whose file stays as it is.

    Raises ConfigurationError for a URL that is not understood.
    """
    sqlite, postgres = _options(settings)
    sqlite = msgspec.structs.replace(sqlite, reads_only=reads_only)
    return backends.backend_for(settings.database_url, sqlite, postgres)


def _options(settings: Settings) -> tuple[SqliteOptions, PostgresOptions]:
    sqlite = SqliteOptions(
        write_queue=settings.write_queue, busy_timeout_ms=settings.busy_timeout_ms, stage=settings.stage
    )
    postgres = PostgresOptions(
        timeout_ms=settings.database_timeout_ms,
        connections=settings.database_pool,
        max_waiters=settings.write_queue,
        prepared=settings.database_prepared,
        stage=settings.stage,
    )
    return sqlite, postgres


def check_files(settings: Settings) -> None:
    """Raise ConfigurationError for an address of Valkey that is not understood, and for a file that can't be
    used and that an address of the settings names."""
    if backends.is_server(settings.database_url):
        from petstore.storage.postgres.own_connection import check_files  # needs a driver that may be missing

        check_files(settings.database_url)
    if settings.valkey_url:
        from petstore.limiter.valkey.url import usable

        usable(settings.valkey_url)


def cut_production(settings: Settings, url: str, clock: Clock, animals: int) -> Content:
    """What may leave production, of its database or a backup, which is only read.

    Raises ConfigurationError for staging's and for one that this program can't read, OperatorError for one
    that is damaged or not there.
    """
    # The source's stage is judged here.
    source = msgspec.structs.replace(settings, stage=None, database_url=url)
    backend = backend_of(source, reads_only=True)
    try:
        schema = backend.schema()
        if not schema.exists:
            raise OperatorError(f"There is no database {backend.name}.")
        if schema.stage == Stage.STAGING:
            raise ConfigurationError("SOURCE is of staging; name production's database, or a backup.")
        if not schema.is_usable or schema.pending():
            raise ConfigurationError(f"{backend.name} was not read: {schema.remark}.")
        return asyncio.run(_cut(backend, clock, animals))
    except StoreDamaged as error:
        raise OperatorError(f"{backend.name} is damaged; nothing was copied.") from error
    except StoreReadOnly as error:  # SQLite can't read a write-ahead log without an index
        raise ConfigurationError(
            f"SQLite can't read {backend.name}, since this user may not make files beside it. Name a copy"
            " that `petstore db backup` made."
        ) from error


async def _cut(backend: Backend, clock: Clock, animals: int) -> Content:
    store = backend.open(clock)
    try:
        return await store.staging.cut(animals)
    finally:
        await store.close()


def migrate_at_start(settings: Settings, backend: Backend, clock: Clock, observer: MigrationObserver) -> None:
    """Migrate a database that exists, when PETSTORE_MIGRATE allows it. The caller holds it for serving."""
    allowed = settings.migrate == "on" or (settings.migrate == "auto" and backend.migrates_at_start)
    if allowed and backend.schema().exists:
        backend.migrate(clock, observer, serving=True)


def copy_database(
    settings: Settings,
    source: str,
    target: str,
    expect: Callable[[int], None],
    progress: Callable[[int], None],
) -> list[CopiedTable]:
    """Copy with the options of the settings; see storage.copying."""
    from petstore.storage import copying  # not needed by other commands

    return copying.copy_database(source, target, *_options(settings), expect, progress)


@asynccontextmanager
async def store_for_command(
    settings: Settings, backend: Backend, clock: Clock, say: Callable[[str], None]
) -> AsyncIterator[Store]:
    """The store beside running servers, which are notified of every change before the command ends.

    Replicas cache the store for LEASE_SECONDS at most. When they can't be notified, because Valkey can't be
    reached or the command does not know its URL, a change waits as long, and `say` gets the reason.
    """

    async def wait(reason: str) -> None:
        say(f"{reason}: waiting {LEASE_SECONDS:g} s, until no replica uses what it kept before.")
        await asyncio.sleep(LEASE_SECONDS)

    async def wait_unless_alone() -> None:
        try:
            has_replicas = await store.served_with_valkey()
        except StoreUnavailable:
            has_replicas = True
        if has_replicas:
            await wait("The replicas share a Valkey, and PETSTORE_VALKEY_URL is not set here")

    async with AsyncExitStack() as opened:
        publisher: Publisher = LeaseWaitPublisher(wait_unless_alone)
        if settings.valkey_url:
            from petstore.limiter.valkey.publisher import open_publisher

            timeout_seconds = settings.valkey_timeout_ms / 1_000
            notifying = open_publisher(
                settings.valkey_url, timeout_seconds, lambda why: wait(f"Valkey can't be reached ({why})")
            )
            opened.push_async_callback(notifying.close)
            publisher = notifying
        store = backend.open(clock, publisher=publisher)
        opened.push_async_callback(store.close)
        yield store


def check_counters(settings: Settings, clock: Clock) -> CountersReport | None:
    """Settings and clock of the Valkey of the settings; None without one. Raises Unavailable."""
    if not settings.valkey_url:
        return None
    from petstore.limiter.valkey.inspection import inspect

    return asyncio.run(inspect(settings.valkey_url, clock))


async def claim_counters(settings: Settings) -> None:
    """Write to the settings' Valkey whose counts it has. Raises ConfigurationError for another stage's:
    accounts and keys have the same numbers there, so each would use up the other's limits."""
    if not settings.valkey_url:
        return
    from petstore.limiter.valkey.inspection import claim

    found = await claim(settings.valkey_url, settings.stage or "")
    if found and found != settings.stage:
        raise ConfigurationError(
            f"PETSTORE_VALKEY_URL: this Valkey counts for {found}. Name another one, or another database of"
            " it, such as valkey://cache/1."
        )
