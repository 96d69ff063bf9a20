"""The backend of `sqlite:///` URLs: one file, served by one process at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager

from petstore.core.clock import Clock
from petstore.core.versions import Publisher
from petstore.storage.migrations import Schema
from petstore.storage.observer import MigrationObserver, StoreObserver
from petstore.storage.options import SqliteOptions
from petstore.storage.reports import CheckReport
from petstore.storage.sqlite import files, lock, migrating, start_checks, upkeep
from petstore.storage.sqlite import schema as schemas
from petstore.storage.sqlite.database_file import DatabaseFile
from petstore.storage.sqlite.store import SqliteStore


class SqliteBackend:
    """Implements storage.backend.Backend for the file at `path`."""

    migrates_at_start = True

    def __init__(self, path: str, options: SqliteOptions) -> None:
        self._path = path
        self._options = options
        self._busy_timeout_ms = options.busy_timeout_ms
        self.file = DatabaseFile(path, options.busy_timeout_ms)

    @property
    def name(self) -> str:
        return str(self.file.checked_path())

    def require_file(self) -> DatabaseFile:
        return self.file

    def open(
        self, clock: Clock, observer: StoreObserver | None = None, publisher: Publisher | None = None
    ) -> SqliteStore:
        return SqliteStore(self._path, clock, self._options, observer)  # versions are in the file

    def schema(self) -> Schema:
        return schemas.read_file(self.name, self._busy_timeout_ms)

    def size_bytes(self) -> int:
        return self.file.checked_path().stat().st_size

    def migrate(self, clock: Clock, observer: MigrationObserver, *, serving: bool = False) -> None:
        migrating.migrate(self.name, self._busy_timeout_ms, clock, observer, serving=serving)

    def check(self) -> CheckReport:
        return upkeep.check(self.name, self._busy_timeout_ms)

    def hold_for_serving(self) -> AbstractContextManager[object]:
        files.refuse_unwritable(self.name)
        return lock.lock_for_serving(self.name, create=True)

    def connection_room(self) -> None:
        return None

    def warnings_before_start(self, clock: Clock) -> list[str]:
        return start_checks.warnings(self.name, self._busy_timeout_ms, clock)
