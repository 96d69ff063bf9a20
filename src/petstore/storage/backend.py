"""The protocol of a database, and the choice of a database by the URL's scheme.

Only the core's own errors leave the storage packages.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.core.versions import Publisher
from petstore.storage.migrations import DatabaseSchema
from petstore.storage.observer import Committed, MigrationObserver
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.reports import CheckReport
from petstore.storage.sqlite.backend import SqliteBackend
from petstore.storage.store import Store


class Backend(Protocol):
    """A database that a URL names, with its options. The constructor opens nothing.

    `file` is None for a database on a server; `migrates_at_start`: PETSTORE_MIGRATE=auto means on. Every
    method raises ConfigurationError for a database that can't be used, StoreUnavailable when it fails.
    """

    @property
    def file(self) -> SqliteBackend | None: ...

    @property
    def migrates_at_start(self) -> bool: ...

    @property
    def name(self) -> str:
        """The database in messages: its file, or its server and name without user and password."""

    def require_file(self) -> SqliteBackend:
        """The file. Raises OperatorError for a database on a server."""

    def open(
        self, clock: Clock, committed: Committed = lambda *_: None, publisher: Publisher | None = None
    ) -> Store:
        """Open the store, and create a missing one. `publisher` gets the changes of a server's store."""

    def schema(self) -> DatabaseSchema:
        """The schema that the database has, beside the one of this program."""

    def size_bytes(self) -> int:
        """The size of the database; of a file without its log."""

    def migrate(self, clock: Clock, observer: MigrationObserver, *, serving: bool = False) -> None:
        """Bring the schema up to date, also in a new database; an existing file is copied first.

        `serving`: the caller is within `hold_for_serving`. Raises OperatorError for a file that is damaged,
        or that another server uses when a step shuts it out.
        """

    def check(self) -> CheckReport:
        """Read the whole database and report its faults. Raises OperatorError for a missing file."""

    def hold_for_serving(self) -> AbstractContextManager[object]:
        """Hold the database for one service whose counters are its own; a missing file is made.

        Raises OperatorError when another service holds it, ConfigurationError for a file that this user can't
        write.
        """

    def connection_room(self) -> int | None:
        """How many connections services may open so that commands still get one; None without a bound."""

    def warnings_before_start(self, clock: Clock) -> list[str]:
        """One line for each fault that does not prevent a start."""


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
    url: str, sqlite: SqliteOptions | None = None, postgres: PostgresOptions | None = None
) -> Backend:
    """The backend of a URL, by its scheme.

    Raises ConfigurationError for an unknown scheme, and when a server's driver is not installed.
    """
    if is_server(url):
        from petstore.storage.postgres.backend import PostgresBackend  # needs a driver that may be missing

        return PostgresBackend(url, postgres or PostgresOptions())
    return SqliteBackend(sqlite_path(url), sqlite or SqliteOptions())
