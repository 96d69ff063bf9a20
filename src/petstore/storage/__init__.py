"""Databases behind the repositories: one package for each, chosen by the URL's scheme.

Only the core's own errors leave this package; SQL stands nowhere else.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from petstore.clock import Clock
from petstore.errors import ConfigurationError
from petstore.keys import KeyRepository
from petstore.pets import PetRepository
from petstore.quota import Ledger
from petstore.storage.observer import StoreObserver
from petstore.usage import UsageRepository
from petstore.versions import VersionSource


class StoreOptions(msgspec.Struct, frozen=True):
    """What a store takes besides its address: a bound on waiting writes, and on waiting for a lock."""

    write_queue: int = 1_024
    busy_timeout_ms: int = 5_000


class Store(Protocol):
    """An open store: its repositories, what tells that kept things are still true, and its upkeep."""

    pets: PetRepository
    keys: KeyRepository
    usage: UsageRepository
    ledger: Ledger
    versions: VersionSource

    async def probe(self) -> None:
        """Raise StoreUnavailable unless the store answers."""
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


def sqlite_path(url: str) -> str:
    """The file that a `sqlite:///` URL names: three slashes for a relative path, four for an absolute one."""
    prefix = "sqlite:///"
    path = url[len(prefix) :]
    if not url.startswith(prefix) or not path or path == ":memory:" or "?" in path:
        raise ConfigurationError(
            "PETSTORE_DATABASE_URL is not understood; write sqlite:///petstore.db for a file in the working"
            " directory or sqlite:////var/lib/petstore/petstore.db for an absolute path."
        )
    return path


def open_storage(
    url: str, clock: Clock, options: StoreOptions, observer: StoreObserver | None = None
) -> Store:
    """Open the migrated database behind `url`.

    Raises ConfigurationError for a URL of no known kind and for a database newer than this program,
    StoreUnavailable when it can't be opened.
    """
    from petstore.storage.sqlite.store import SqliteStore

    return SqliteStore(sqlite_path(url), clock, options.write_queue, options.busy_timeout_ms, observer)
