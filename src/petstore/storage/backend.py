"""Databases behind the repositories: one package for each, chosen by the URL's scheme.

Only the core's own errors leave this package; SQL stands nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.core.keys import KeyRepository
from petstore.core.limits.quota import CounterStore, MergingCounterStore
from petstore.core.limits.usage import UsageRepository
from petstore.core.pets import PetRepository
from petstore.core.versions import Publisher, VersionSource
from petstore.storage.observer import StoreLoad, StoreObserver

if TYPE_CHECKING:
    from petstore.storage.postgres.connection import PostgresOptions


class StoreOptions(msgspec.Struct, frozen=True):
    """What a store takes besides its address: bounds on what may wait, and how to speak to a server."""

    write_queue: int = 1_024
    busy_timeout_ms: int = 5_000
    database_timeout_ms: int = 5_000
    database_pool: int = 10
    database_prepared: bool = True


class Store(Protocol):
    """An open store: its repositories, what tells that kept things are still true, and its upkeep."""

    pets: PetRepository
    keys: KeyRepository
    usage: UsageRepository
    versions: VersionSource

    @property
    def counters(self) -> CounterStore:
        """Where counters survive a restart."""
        ...

    def load(self) -> StoreLoad:
        """What is under way now."""
        ...

    async def probe(self) -> None:
        """Raise StoreUnavailable unless the store answers."""
        ...

    async def try_write(self) -> None:
        """Carry out a write that changes nothing.

        Raises StoreUnavailable when that fails, and ConfigurationError where no time will mend it.
        """
        ...

    async def is_empty(self) -> bool:
        """Whether no account exists: the mark of a first start."""
        ...

    async def purge(self, now_ms: int) -> None:
        """Delete what has outlived its promise."""
        ...

    async def close(self) -> None:
        """Carry out what was accepted, then let go."""
        ...


class SharedStore(Store, Protocol):
    """A store that several processes may serve from at once."""

    @property
    def counters(self) -> MergingCounterStore:
        """Where counters survive a restart, whoever of them wrote."""
        ...

    async def note_counters(self, *, shared: bool) -> None:
        """Record that servers cache under Valkey's versions, so that commands notify them or wait."""
        ...

    async def has_shared_counters(self) -> bool:
        """Whether that was noted."""
        ...


def is_server(url: str) -> bool:
    """Whether the URL names a database server, and not a file."""
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> str:
    """The file that a `sqlite:///` URL names: three slashes for a relative path, four for an absolute one."""
    prefix = "sqlite:///"
    path = url[len(prefix) :]
    if not url.startswith(prefix) or not path or path == ":memory:" or "?" in path:
        raise ConfigurationError(
            "PETSTORE_DATABASE_URL is not understood; write sqlite:///petstore.db for a file in the working"
            " directory, sqlite:////var/lib/petstore/petstore.db for an absolute path, or"
            " postgresql://USER:PASSWORD@HOST:5432/DATABASE for a server."
        )
    return path


def open_storage(
    url: str,
    clock: Clock,
    options: StoreOptions,
    observer: StoreObserver | None = None,
    publisher: Publisher | None = None,
) -> Store:
    """Open the database behind `url`, created where there is none.

    A server's store tells `publisher` of every change.

    Raises ConfigurationError for a URL of no known kind and for a schema that this program can't work with,
    StoreUnavailable when it can't be opened.
    """
    if is_server(url):
        return open_shared_storage(url, clock, options, observer, publisher)
    from petstore.storage.sqlite.backend import SqliteStore

    return SqliteStore(sqlite_path(url), clock, options.write_queue, options.busy_timeout_ms, observer)


def open_shared_storage(
    url: str,
    clock: Clock,
    options: StoreOptions,
    observer: StoreObserver | None = None,
    publisher: Publisher | None = None,
) -> SharedStore:
    """The same for the URL of a server."""
    from petstore.storage.postgres.backend import PostgresStore

    return PostgresStore(url, clock, tuning(options), publisher, observer)


def tuning(options: StoreOptions) -> PostgresOptions:
    """The options as the store of a server takes them."""
    from petstore.storage.postgres.connection import PostgresOptions

    return PostgresOptions(
        timeout_ms=options.database_timeout_ms,
        connections=options.database_pool,
        waiting=options.write_queue,
        prepared=options.database_prepared,
    )
