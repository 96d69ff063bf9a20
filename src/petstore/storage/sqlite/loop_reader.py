"""Reads on the event loop: one check for changes and one read transaction for each iteration.

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
    """Implements versions.VersionSource, and runs queries; all of an iteration share one state.

    A callback that runs in an iteration of the loop was queued before the iteration began, so its request was
    received before anything that is read in it. The callback that ends the iteration's state is queued before
    the state is read, and it ends all of it: else a request that was queued in between, or that arrives
    later, would be answered from a state older than itself.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._has_begun = False
        self._checked = False
        self._data_version = -1
        self._versions = Versions(-1, -1)

    async def current(self) -> Versions:
        return self.known()

    def known(self) -> Versions:
        """The iteration's versions: must be called on the event loop."""
        if self._checked:
            return self._versions
        self._begin()
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
        """Run a query in the iteration's transaction: taking SQLite's lock costs as much as a small query.

        Raises the driver's errors.
        """
        self._begin()
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        return self._connection.execute(sql, bindings)

    def _begin(self) -> None:
        if not self._has_begun:
            asyncio.get_running_loop().call_soon(self.end)
            self._has_begun = True

    def end(self) -> None:
        """Forget the iteration's state; the next use reads a new one."""
        self._has_begun = self._checked = False
        if self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):  # nothing was written; the next query raises the cause
                self._connection.execute("COMMIT")
