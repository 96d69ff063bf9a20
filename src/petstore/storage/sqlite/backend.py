"""The backend of `sqlite:///` URLs: one file, served by one process at a time."""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.versions import Publisher
from petstore.storage.observer import StoreObserver
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite.store import SqliteStore


class SqliteBackend:
    """Implements storage.backend.Backend for the file at `path`."""

    def __init__(self, path: str, options: SqliteOptions) -> None:
        self._path = path
        self._options = options

    def open(
        self, clock: Clock, observer: StoreObserver | None = None, publisher: Publisher | None = None
    ) -> SqliteStore:
        return SqliteStore(self._path, clock, self._options, observer)  # versions are in the file
