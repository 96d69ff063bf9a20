"""Reads on the event loop: one read transaction for all the queries of a turn.

Taking and giving back SQLite's lock costs as much as a small query, so a turn does it once.
"""

from __future__ import annotations

import asyncio
from typing import Any

import apsw


class TurnReader:
    """Queries over one connection; what they see is one state of the database, read during this turn.

    A callback that runs in a turn was queued before the turn began, so its request was received before a
    snapshot that is taken in that turn. The callback that ends the snapshot is queued before it is taken,
    else a request queued in between would be answered from a state older than itself.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._open = False

    def execute(self, sql: str, bindings: tuple[Any, ...] = ()) -> apsw.Cursor:
        """Run a query in this turn's snapshot. Must be called on the event loop."""
        if not self._open:
            asyncio.get_running_loop().call_soon(self.end)
            self._connection.execute("BEGIN")
            self._open = True
        return self._connection.execute(sql, bindings)

    def end(self) -> None:
        """Give the snapshot back; the next query takes a new one."""
        if self._open:
            self._open = False
            self._connection.execute("COMMIT")
