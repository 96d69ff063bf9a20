"""The versions of the animals and the keys, checked once for each turn of the event loop.

`PRAGMA data_version` tells whether another connection has committed, whatever process made it. (The file
control behind `apsw.Connection.data_version` does not look at the file and misses such commits.)
"""

from __future__ import annotations

import asyncio

import apsw

from petstore.storage.sqlite.connection import translate
from petstore.versions import Versions


class SqliteVersions:
    """Implements versions.VersionSource.

    A callback that runs in a turn was queued before the turn began, so its request was received before a
    check made in that turn: one check serves all of them. The callback that ends the check's validity is
    queued before the check is made, else a request queued in between would use a check older than itself.
    """

    def __init__(self, reader: apsw.Connection) -> None:
        self._reader = reader
        self._data_version = -1
        self._versions = Versions(-1, -1)
        self._valid = False

    def current(self) -> Versions:
        if self._valid:
            return self._versions
        asyncio.get_running_loop().call_soon(self._expire)
        try:
            data_version = self._reader.execute("PRAGMA data_version").get
            if data_version != self._data_version:
                row = self._reader.execute("SELECT catalogue, keyring FROM versions").get
                self._versions = Versions(*row)
                self._data_version = data_version
        except apsw.Error as error:
            raise translate(error) from error
        self._valid = True
        return self._versions

    def _expire(self) -> None:
        self._valid = False
