"""The backend of `postgresql://` URLs: a database on a server, which several processes may serve."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn
from urllib.parse import urlsplit

from petstore.core.clock import Clock
from petstore.core.errors import OperatorError
from petstore.core.versions import Publisher
from petstore.storage.migrations import DatabaseSchema
from petstore.storage.observer import Committed, MigrationObserver
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import schema as schemas
from petstore.storage.postgres import upkeep
from petstore.storage.postgres.own_connection import on_connection
from petstore.storage.postgres.store import PostgresStore
from petstore.storage.reports import CheckReport


class PostgresBackend:
    """Implements storage.backend.Backend for the database at `url`."""

    migrates_at_start = False
    file = None

    def __init__(self, url: str, options: PostgresOptions) -> None:
        self._url = url
        self._options = options

    @property
    def name(self) -> str:
        parts = urlsplit(self._url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def require_file(self) -> NoReturn:
        raise OperatorError(
            "The database is on a PostgreSQL server, not in a file:"
            " copy it with pg_dump, and put a copy back with pg_restore."
        )

    def open(
        self, clock: Clock, committed: Committed = lambda *_: None, publisher: Publisher | None = None
    ) -> PostgresStore:
        return PostgresStore(self._url, clock, self._options, publisher, committed)

    def schema(self) -> DatabaseSchema:
        return on_connection(self._url, self._options, schemas.read)

    def size_bytes(self) -> int:
        return on_connection(self._url, self._options, upkeep.read_size)

    def migrate(self, clock: Clock, observer: MigrationObserver, *, serving: bool = False) -> None:
        schemas.migrate(self._url, self._options, observer.applied)

    def check(self) -> CheckReport:
        return on_connection(self._url, self._options, upkeep.check, bounded=False)

    def hold_for_serving(self) -> AbstractContextManager[object]:
        if not self._options.prepared:
            return nullcontext()  # PgBouncer has no sessions, so nothing can be held through it
        return upkeep.held_for_serving(self._url, self._options)

    def connection_room(self) -> int | None:
        if not self._options.prepared:
            return None  # PgBouncer shares out its own connections
        return on_connection(self._url, self._options, upkeep.read_connection_room)

    def warnings_before_start(self, clock: Clock) -> list[str]:
        return []
