"""Databases behind the repositories: one package for each, chosen by the URL's scheme.

Only the core's own errors leave this package; SQL stands nowhere else.
"""

from __future__ import annotations

from typing import Protocol

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.core.keys import KeyRepository
from petstore.core.limits.counters import CounterStore, MergingCounterStore
from petstore.core.limits.usage import UsageRepository
from petstore.core.pets import PetRepository
from petstore.core.versions import Publisher, VersionSource
from petstore.storage.observer import StoreLoad, StoreObserver
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.sqlite.backend import SqliteBackend


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

    @property
    def merging_counters(self) -> MergingCounterStore | None:
        """The same where several processes may write it; None for a file."""
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

    async def note_counters(self, *, shared: bool) -> None:
        """Record whether services count in Valkey, so that commands know that servers cache by it."""
        ...

    async def has_shared_counters(self) -> bool:
        """Whether services counted in Valkey last. Raises StoreUnavailable."""
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


class Backend(Protocol):
    """A database that a URL names, with its options. Nothing is opened before a method asks for it."""

    def open(
        self, clock: Clock, observer: StoreObserver | None = None, publisher: Publisher | None = None
    ) -> Store:
        """The store, created where there is none. A server's store tells `publisher` of every change.

        Raises ConfigurationError for a schema that this program can't work with, StoreUnavailable when the
        database can't be opened.
        """
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


def backend_for(
    url: str,
    sqlite: SqliteOptions = SqliteOptions(),  # noqa: B008
    postgres: PostgresOptions = PostgresOptions(),  # noqa: B008
) -> Backend:
    """The backend of a URL, by its scheme: the one place where that is decided.

    Raises ConfigurationError for a URL of no known kind, and where a server's driver is not installed.
    """
    if is_server(url):
        from petstore.storage.postgres.backend import PostgresBackend  # needs a driver that not all have

        return PostgresBackend(url, postgres)
    return SqliteBackend(sqlite_path(url), sqlite)
