"""The look-up of a request's key in SQLite. The other queries: transactions/keys.py."""

from __future__ import annotations

import apsw

from petstore.core.clock import Clock
from petstore.core.keys import Caller
from petstore.storage.sqlite.connection import translated
from petstore.storage.sqlite.database import Database
from petstore.transactions.keys import CALLER, Keys
from petstore.transactions.rows import read_caller

_CALLER = CALLER.sqlite


class SqliteKeys(Keys):
    """Implements core.keys.KeyRepository."""

    def __init__(self, reader: apsw.Connection, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._reader = reader

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        with translated():
            row = self._reader.execute(_CALLER, (key_digest,)).fetchone()
        return read_caller(row) if row else None
