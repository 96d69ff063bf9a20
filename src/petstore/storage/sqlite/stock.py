"""Imports of stock lists into the file, on a connection of their own.

All is staged and planned before the write lock is taken. Under the lock are the few statements that copy the
planned rows, and the sync of the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import apsw

from petstore.core.clock import Clock
from petstore.core.stock import Purpose, StockPlan, StockRow
from petstore.storage.failures import NOTHING_STORED, OUTCOME_UNKNOWN
from petstore.storage.sqlite.connection import open_writer, translate
from petstore.storage.sqlite.database import Database, run
from petstore.storage.sqlite.own_connection import in_thread
from petstore.transactions import stock
from petstore.transactions.rows import placeholders
from petstore.transactions.script import Script
from petstore.transactions.stock import STAGED, Import, Stock

_T = TypeVar("_T")
# Together with Python less than 150 MiB. With a quarter of it the lock is held for twice as long.
_CACHE_KIB = 80 << 10
_STAGE_CACHE_KIB = 16 << 10
_STAGE = f"INSERT INTO stock_rows VALUES ({placeholders(len(STAGED))})".replace("$", "?")
# In place of the triggers, which would move the version once for each animal.
_MOVE_VERSION = "UPDATE versions SET catalogue = catalogue + 1"


class SqliteStock(Stock):
    """Implements stock.StockRepository."""

    def __init__(self, path: str, busy_timeout_ms: int, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms

    @contextlib.asynccontextmanager
    async def importing(
        self, actor: str, key_name: str | None, purpose: Purpose | None = None
    ) -> AsyncIterator[SqliteStockImport]:
        with contextlib.closing(open_writer(self._path, self._busy_timeout_ms)) as connection:
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("PRAGMA temp_store = FILE")
            connection.execute(f"PRAGMA temp.cache_size = -{_STAGE_CACHE_KIB}")
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            # A source key is added with its animal: nothing to look up under the lock.
            connection.execute("PRAGMA foreign_keys = OFF")
            opened = SqliteStockImport(connection, self._clock, actor, key_name, purpose)
            await opened.begin()
            yield opened


class SqliteStockImport(Import):
    """Implements stock.StockImport."""

    _connection: apsw.Connection
    _locked_at = 0.0

    async def begin(self) -> None:
        """Make the temporary tables."""
        await self._run(stock.begin())

    async def stage(self, rows: Sequence[StockRow]) -> None:
        records = self._staged(rows)

        def insert() -> None:
            with self._connection:
                self._connection.executemany(_STAGE, records)

        await self._in_thread(insert)

    async def plan(self, *, locked: bool = False) -> StockPlan:
        def make() -> StockPlan:
            if locked:
                self._lock()
                return run(self._connection, self._plan())
            self._connection.execute("BEGIN")  # one state of the database, without its write lock
            try:
                return run(self._connection, self._plan())
            finally:
                if self._connection.in_transaction:  # an interruption or a full disk has ended it
                    self._connection.execute("COMMIT")

        return await self._in_thread(make)

    async def store(self) -> float | None:
        now_ms = self._clock.now_ms()
        return await self._in_thread(lambda: self._commit(now_ms), keeps_result=True)

    def _commit(self, now_ms: int) -> float | None:
        connection = self._connection
        if not self._has_work:
            return 0.0
        committing = False
        try:
            if not connection.in_transaction:
                self._lock()
            if not run(connection, self._store(now_ms)):
                connection.execute("ROLLBACK")
                return None
            connection.execute(_MOVE_VERSION)
            committing = True
            connection.execute("COMMIT")
        except apsw.ConstraintError:  # another import has added an animal of the same key
            connection.execute("ROLLBACK")
            return None
        except Exception as error:
            if connection.in_transaction:  # otherwise SQLite has rolled back
                with contextlib.suppress(apsw.Error):
                    connection.execute("ROLLBACK")
            certain = not committing or isinstance(error, apsw.FullError)
            raise translate(error, NOTHING_STORED if certain else OUTCOME_UNKNOWN) from error
        locked_seconds = self._clock.monotonic() - self._locked_at
        # Move the log into the file, so that no request has to. Other modes than PASSIVE keep writers out
        # while they wait for readers, such as a backup.
        with contextlib.suppress(apsw.Error):  # the server does it later
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return locked_seconds

    def _lock(self) -> None:
        """Begin a transaction that excludes other writers."""
        self._connection.wal_autocheckpoint(0)  # not before the lock is released
        self._connection.execute("BEGIN IMMEDIATE")
        self._locked_at = self._clock.monotonic()

    async def _run(self, script: Script[_T]) -> _T:
        return await self._in_thread(lambda: run(self._connection, script))

    async def _in_thread(self, work: Callable[[], _T], *, keeps_result: bool = False) -> _T:
        try:
            return await in_thread(self._connection, work, keeps_result=keeps_result)
        except apsw.Error as error:
            raise translate(error, NOTHING_STORED) from error
