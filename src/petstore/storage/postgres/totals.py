"""Counts a database on a connection of its own: no request waits for it, and no timeout of theirs ends it."""

from __future__ import annotations

import asyncio
from zoneinfo import ZoneInfo

from petstore.core.totals import Totals
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import translated
from petstore.storage.postgres.transaction import run_locking
from petstore.transactions.totals import totals

_TIMEOUT_SECONDS = 120
# One core of the server at most. Set for this transaction alone: PgBouncer may hand the session on.
_BEGIN = (
    "BEGIN READ ONLY; SET LOCAL max_parallel_workers_per_gather = 0;"
    f" SET LOCAL statement_timeout = {_TIMEOUT_SECONDS * 1_000}"
)


class PostgresTotals:
    """Implements totals.TotalsRepository."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, now_ms: int, zone: ZoneInfo) -> Totals:
        with translated():
            async with asyncio.timeout(_TIMEOUT_SECONDS), self._database.apart() as connection:
                await connection.execute(_BEGIN)
                return await run_locking(connection, totals(now_ms, zone))
