"""Reads on the event loop: one check for changes and one read transaction for each turn of the loop.

`PRAGMA data_version` changes when another connection of any process has committed. (The file
control behind `apsw.Connection.data_version` does not look at the file and misses such commits.)
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import apsw

from petstore.core.versions import Versions
from petstore.storage.sqlite.connection import translate


class LoopReader:
    """Implements versions.VersionSource, and runs queries; all of a turn share one state of the database.

    A callback that runs in a turn was queued before the turn began, so its request was received before
    anything that is read in that turn. The callback that ends the turn's state is queued before the state
    is read, and it ends all of it: else a request that was queued in between, or that arrives later, would
    be answered from a state older than itself.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._in_turn = False
        self._checked = False
        self._data_version = -1
        self._versions = Versions(-1, -1)

    async def current(self) -> Versions:
        return self.known()

    def known(self) -> Versions:
        """The turn's versions: must be called on the event loop."""
        if self._checked:
            return self._versions
        self._begin_turn()
        try:
            data_version = self._connection.execute("PRAGMA data_version").get
            if data_version != self._data_version:
                row = self._connection.execute("SELECT catalogue, keyring FROM versions").get
                self._versions = Versions(*row)
                self._data_version = data_version
        except apsw.Error as error:
            raise translate(error) from error
        self._checked = True
        return self._versions

    try_current = known

    def execute(self, sql: str, bindings: tuple[Any, ...] = ()) -> apsw.Cursor:
        """Run a query in the turn's read transaction: taking SQLite's lock costs as much as a small query.

        Raises the driver's errors.
        """
        self._begin_turn()
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        return self._connection.execute(sql, bindings)

    def _begin_turn(self) -> None:
        if not self._in_turn:
            asyncio.get_running_loop().call_soon(self.end)
            self._in_turn = True

    def end(self) -> None:
        """Forget the turn's state; the next use reads a new one."""
        self._in_turn = self._checked = False
        if self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):  # nothing was written; the next query raises the cause
                self._connection.execute("COMMIT")
