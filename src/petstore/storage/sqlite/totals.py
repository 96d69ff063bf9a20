"""Counts a file on a connection of its own in a thread: neither requests nor the writer wait for it."""

from __future__ import annotations

import contextlib
from zoneinfo import ZoneInfo

from petstore.core.totals import Totals
from petstore.storage.sqlite.connection import open_reader, translated
from petstore.storage.sqlite.database import run
from petstore.storage.sqlite.own_connection import in_thread
from petstore.transactions.totals import totals


class SqliteTotals:
    """Implements totals.TotalsRepository."""

    def __init__(self, path: str, busy_timeout_ms: int) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms

    async def count(self, now_ms: int, zone: ZoneInfo) -> Totals:
        with contextlib.closing(open_reader(self._path, self._busy_timeout_ms)) as connection, translated():
            return await in_thread(connection, lambda: run(connection, totals(now_ms, zone)))
