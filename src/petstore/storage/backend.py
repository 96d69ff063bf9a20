"""The protocols of a database and its store, and the choice of a database by the URL's scheme.

Only the core's own errors leave the storage packages.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.core.limits.counters import CounterStore, MergingCounterStore
from petstore.core.pets import PetRepository
from petstore.core.stock import StockRepository
from petstore.core.totals import TotalsRepository
from petstore.core.versions import Publisher, VersionSource
from petstore.storage.migrations import Schema
from petstore.storage.observer import MigrationObserver, StoreLoad, StoreObserver
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.reports import CheckReport
from petstore.storage.sqlite.backend import SqliteBackend
from petstore.storage.sqlite.database_file import DatabaseFile
from petstore.transactions.accounts import Accounts
from petstore.transactions.billing import Billing
from petstore.transactions.categories import Categories
from petstore.transactions.imports import Uploads
from petstore.transactions.jobs import Jobs
from petstore.transactions.journal import Journal
from petstore.transactions.keys import Keys
from petstore.transactions.orders import Orders
from petstore.transactions.people import People
from petstore.transactions.sign_ins import SignIns
from petstore.transactions.usage import Usage


class Store(Protocol):
    """An open store: its repositories, the versions that caches depend on, and its upkeep."""

    pets: PetRepository
    stock: StockRepository
    uploads: Uploads
    jobs: Jobs
    orders: Orders
    categories: Categories
    accounts: Accounts
    keys: Keys
    journal: Journal
    usage: Usage
    billing: Billing
    people: People
    totals: TotalsRepository
    sign_ins: SignIns
    versions: VersionSource

    @property
    def counters(self) -> CounterStore:
        """Where counters survive a restart."""
        ...

    @property
    def merging_counters(self) -> MergingCounterStore | None:
        """The counters, if several processes may write them; None for a file."""
        ...

    def load(self) -> StoreLoad:
        """The load at this moment, for metrics."""
        ...

    async def probe(self) -> None:
        """Raise StoreUnavailable unless the store answers."""
        ...

    async def try_write(self) -> None:
        """Commit a write that changes nothing.

        Raises StoreUnavailable when that fails, ConfigurationError when trying again can't help.
        """
        ...

    async def note_serving(self, *, with_valkey: bool) -> None:
        """Record whether this service counts in Valkey: if so, commands notify it of changes or wait."""
        ...

    async def served_with_valkey(self) -> bool:
        """Whether the last service counted in Valkey. Raises StoreUnavailable."""
        ...

    async def is_empty(self) -> bool:
        """Whether no account exists, as at a first start."""
        ...

    async def purge(self, now_ms: int) -> None:
        """Delete Idempotency-Keys and uploads older than 24 hours, and ended sessions, links and tries."""
        ...

    async def close(self) -> None:
        """Finish the accepted writes, then close the connections."""
        ...


class Backend(Protocol):
    """A database that a URL names, with its options. The constructor opens nothing.

    `file` is None for a database on a server; `migrates_at_start`: PETSTORE_MIGRATE=auto means on. Every
    method raises ConfigurationError for a database that can't be used, StoreUnavailable when it fails.
    """

    @property
    def file(self) -> DatabaseFile | None: ...

    @property
    def migrates_at_start(self) -> bool: ...

    @property
    def name(self) -> str:
        """The database in messages: its file, or its server and name without user and password."""
        ...

    def require_file(self) -> DatabaseFile:
        """The file. Raises OperatorError for a database on a server."""
        ...

    def open(
        self, clock: Clock, observer: StoreObserver | None = None, publisher: Publisher | None = None
    ) -> Store:
        """Open the store, and create a missing one. `publisher` gets the changes of a server's store."""
        ...

    def schema(self) -> Schema:
        """The schema that the database has, beside the one of this program."""
        ...

    def size_bytes(self) -> int:
        """The size of the database; of a file without its log."""
        ...

    def migrate(self, clock: Clock, observer: MigrationObserver, *, serving: bool = False) -> None:
        """Bring the schema up to date, also in a new database; an existing file is copied first.

        `serving`: the caller is within `hold_for_serving`. Raises OperatorError for a file that is damaged,
        or that another server uses when a step shuts it out.
        """
        ...

    def check(self) -> CheckReport:
        """Read the whole database and report its faults. Raises OperatorError for a missing file."""
        ...

    def hold_for_serving(self) -> AbstractContextManager[object]:
        """Hold the database for one service whose counters are its own; a missing file is made.

        Raises OperatorError when another service holds it, ConfigurationError for a file that this user can't
        write.
        """
        ...

    def connection_room(self) -> int | None:
        """How many connections services may open so that commands still get one; None without a bound."""
        ...

    def warnings_before_start(self, clock: Clock) -> list[str]:
        """One line for each fault that does not prevent a start."""
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
    url: str, sqlite: SqliteOptions | None = None, postgres: PostgresOptions | None = None
) -> Backend:
    """The backend of a URL, by its scheme.

    Raises ConfigurationError for an unknown scheme, and when a server's driver is not installed.
    """
    if is_server(url):
        from petstore.storage.postgres.backend import PostgresBackend  # needs a driver that may be missing

        return PostgresBackend(url, postgres or PostgresOptions())
    return SqliteBackend(sqlite_path(url), sqlite or SqliteOptions())
