"""Imports of stock lists into a server, on a connection of their own, which keeps the rows and the plan.

Each statement is a transaction of its own until one stores all: entries of the journal wait for whatever
transaction has written, if only to a temporary table. PgBouncer lends a session for one transaction, so
behind it the whole import is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from functools import partial
from typing import TypeVar

import asyncpg

from petstore.core.clock import Clock
from petstore.core.stock import Purpose, StockPlan, StockRow
from petstore.storage.failures import NOTHING_STORED
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import translated
from petstore.storage.postgres.transaction import Announce, commit, run_locking, run_script
from petstore.transactions import stock
from petstore.transactions.script import CATALOGUE, Script
from petstore.transactions.stock import STAGED, Import, Stock

_T = TypeVar("_T")
# Imports store one after the other, so that none adds what another is adding, and nobody changes their plans'
# animals.
_LOCK = (
    "SELECT pg_advisory_xact_lock(hashtextextended('petstore stock list', 0));"
    " SELECT 1 FROM stock_changes c JOIN pets p ON p.id = c.pet_id FOR UPDATE OF p"
)


class PostgresStock(Stock):
    """Implements stock.StockRepository."""

    def __init__(self, database: Database, clock: Clock, *, in_one: bool) -> None:
        """`in_one`: the only transaction is the whole import."""
        super().__init__(database, clock)
        self._postgres = database
        self._in_one = in_one

    @contextlib.asynccontextmanager
    async def importing(
        self, actor: str, key_name: str | None, purpose: Purpose | None = None
    ) -> AsyncIterator[PostgresStockImport]:
        async with contextlib.AsyncExitStack() as opened:
            with translated(NOTHING_STORED):
                connection = await opened.enter_async_context(self._postgres.apart())
            announce = partial(self._postgres.announcement, CATALOGUE)
            made = PostgresStockImport(connection, self._clock, actor, key_name, purpose)
            await made.begin(announce, in_one=self._in_one)
            yield made


class PostgresStockImport(Import):
    """Implements stock.StockImport."""

    _announce: Announce

    async def begin(self, announce: Announce, *, in_one: bool) -> None:
        """Make the temporary tables; with `in_one` in the only transaction. The commit is announced."""
        self._announce = announce
        if in_one:
            await self._known(self._connection.execute("BEGIN"))
        await self._run(stock.begin(" ON COMMIT DROP" if in_one else ""))

    async def stage(self, rows: Sequence[StockRow]) -> None:
        records = self._staged(rows)
        await self._known(
            self._connection.copy_records_to_table("stock_rows", records=records, columns=STAGED)
        )

    async def plan(self, *, locked: bool = False) -> StockPlan:
        if not locked:
            return await self._run(self._plan())
        await self._known(self._lock())
        return await self._known(run_locking(self._connection, self._plan()))

    async def store(self) -> float | None:
        if not self._has_work:
            return 0.0
        undo = await self._known(self._lock())
        with translated(NOTHING_STORED):
            try:
                is_stored = await run_locking(self._connection, self._store(self._clock.now_ms()))
            except asyncpg.UniqueViolationError:  # another import has added an animal of the same key
                is_stored = False
        if not is_stored:
            await self._known(self._connection.execute(undo))
            return None
        await commit(self._connection, self._announce)
        return 0.0

    async def _lock(self) -> str:
        """Begin to store; what undoes it."""
        begin, undo = "BEGIN", "ROLLBACK"
        if self._connection.is_in_transaction():
            begin, undo = "SAVEPOINT storing", "ROLLBACK TO storing"
        await self._connection.execute(f"{begin}; {_LOCK}")
        return undo

    async def _run(self, script: Script[_T]) -> _T:
        fetch = self._connection.fetch
        return await self._known(
            run_script(script, lambda statement, arguments: fetch(statement.postgres, *arguments))
        )

    async def _known(self, work: Awaitable[_T]) -> _T:
        """Await what comes before the commit: after a failure nothing is stored."""
        with translated(NOTHING_STORED):
            return await work
