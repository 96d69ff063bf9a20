"""The SQLite store: its two connections joined with the repositories that use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import apsw

from petstore.core.clock import Clock
from petstore.storage.observer import Committed, StoreLoad
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite import reserve
from petstore.storage.sqlite.connection import (
    open_reader,
    open_writer,
    remove_empty_log,
    translated,
)
from petstore.storage.sqlite.counters import SqliteCounters
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.keys import SqliteKeys
from petstore.storage.sqlite.loop_reader import LoopReader
from petstore.storage.sqlite.pets import SqlitePets
from petstore.storage.sqlite.schema import prepare
from petstore.storage.sqlite.search import SqliteSearch
from petstore.storage.sqlite.stock import SqliteStock
from petstore.storage.sqlite.totals import SqliteTotals
from petstore.storage.sqlite.writer import Writer
from petstore.storage.store import Store


class SqliteStore(Store):
    """The store of the file at `path`; creates a missing one."""

    def __init__(
        self, path: str, clock: Clock, options: SqliteOptions, committed: Committed = lambda *_: None
    ) -> None:
        busy_timeout_ms = options.busy_timeout_ms
        self._path_of_reads = path if options.reads_only else None
        prepare(path, options)
        self._reader = open_reader(path, busy_timeout_ms)
        open_for_writes = open_reader if options.reads_only else open_writer
        self.writer = Writer(
            open_for_writes(path, busy_timeout_ms),
            clock,
            options.write_queue,
            committed,
            partial(reserve.give_up, path),
        )
        loop_reader = LoopReader(self._reader)
        database = Database(self._reader, self.writer)
        self._index = SqliteSearch(path, busy_timeout_ms)
        super().__init__(
            database,
            clock,
            pets=SqlitePets(loop_reader, self.writer, database, clock),
            stock=SqliteStock(path, busy_timeout_ms, database, clock),
            keys=SqliteKeys(self._reader, database, clock),
            totals=SqliteTotals(path, busy_timeout_ms),
            index=self._index,
        )
        self.counters = SqliteCounters(database, self.writer)
        self.merging_counters = None
        self.versions = loop_reader

    def load(self) -> StoreLoad:
        return StoreLoad(writes_waiting=self.writer.waiting)

    def on_commit(self, callback: Callable[[], None]) -> None:
        self.writer.on_commit = callback

    async def probe(self) -> None:
        with translated():
            self._reader.execute("SELECT 1 FROM versions").fetchone()

    async def try_write(self) -> None:
        def rewrite(connection: apsw.Connection) -> None:
            same: int = connection.execute("PRAGMA user_version").get
            connection.execute(f"PRAGMA user_version = {same}")  # writes one page to the log, unchanged

        await self.writer.submit(rewrite)

    async def close(self) -> None:
        await self.writer.drain()
        await self._index.close()
        await asyncio.sleep(0)  # the last group is answered by callbacks that are due now
        self._reader.close()
        # The writing connection last: its close moves the log into the file.
        self.writer.close()
        if self._path_of_reads is not None:
            remove_empty_log(self._path_of_reads)
