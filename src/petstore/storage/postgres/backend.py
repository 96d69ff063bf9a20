"""The backend of `postgresql://` URLs: a database on a server, which several processes may serve."""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.versions import Publisher
from petstore.storage.observer import StoreObserver
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.store import PostgresStore


class PostgresBackend:
    """Implements storage.backend.Backend for the database at `url`."""

    def __init__(self, url: str, options: PostgresOptions) -> None:
        self._url = url
        self._options = options

    def open(
        self, clock: Clock, observer: StoreObserver | None = None, publisher: Publisher | None = None
    ) -> PostgresStore:
        return PostgresStore(self._url, clock, self._options, publisher, observer)
