"""The SQLite store: its two connections joined with the repositories that use them."""

from __future__ import annotations

import asyncio
from functools import partial

import apsw

from petstore.core.clock import Clock
from petstore.core.limits.counters import CounterStore, MergingCounterStore
from petstore.core.pets import PetRepository
from petstore.core.stock import StockRepository
from petstore.core.totals import TotalsRepository
from petstore.core.versions import VersionSource
from petstore.storage.observer import StoreLoad, StoreObserver
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite import reserve
from petstore.storage.sqlite.connection import open_reader, open_writer, translated
from petstore.storage.sqlite.counters import SqliteCounters
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.keys import SqliteKeys
from petstore.storage.sqlite.loop_reader import LoopReader
from petstore.storage.sqlite.pets import SqlitePets
from petstore.storage.sqlite.schema import prepare
from petstore.storage.sqlite.stock import SqliteStock
from petstore.storage.sqlite.totals import SqliteTotals
from petstore.storage.sqlite.writer import Writer
from petstore.transactions.accounts import Accounts, has_accounts
from petstore.transactions.billing import Billing
from petstore.transactions.categories import Categories
from petstore.transactions.idempotency import purge
from petstore.transactions.imports import Uploads
from petstore.transactions.jobs import Jobs
from petstore.transactions.journal import Journal
from petstore.transactions.keys import Keys
from petstore.transactions.orders import Orders
from petstore.transactions.people import People
from petstore.transactions.sign_ins import SignIns, purge_sign_ins
from petstore.transactions.usage import Usage


class SqliteStore:
    """Implements storage.backend.Store for the file at `path`; creates a missing one."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        options: SqliteOptions,
        observer: StoreObserver | None = None,
    ) -> None:
        busy_timeout_ms = options.busy_timeout_ms
        prepare(path, busy_timeout_ms)
        self._reader = open_reader(path, busy_timeout_ms)
        self.writer = Writer(
            open_writer(path, busy_timeout_ms),
            clock,
            options.write_queue,
            observer,
            partial(reserve.give_up, path),
        )
        turn = LoopReader(self._reader)
        database = self._database = Database(self._reader, self.writer)
        self.pets: PetRepository = SqlitePets(turn, self.writer, database, clock)
        self.stock: StockRepository = SqliteStock(path, busy_timeout_ms, database, clock)
        self.uploads = Uploads(database, clock)
        self.jobs = Jobs(database, clock)
        self.orders = Orders(database, clock)
        self.categories = Categories(database, clock)
        self.accounts = Accounts(database, clock)
        self.keys: Keys = SqliteKeys(self._reader, database, clock)
        self.journal = Journal(database, clock)
        self.usage = Usage(database, clock)
        self.billing = Billing(database, clock)
        self.people = People(database, clock)
        self.totals: TotalsRepository = SqliteTotals(path, busy_timeout_ms)
        self.sign_ins = SignIns(database, clock)
        self.counters: CounterStore = SqliteCounters(database, self.writer)
        self.merging_counters: MergingCounterStore | None = None
        self.versions: VersionSource = turn

    def load(self) -> StoreLoad:
        return StoreLoad(writes_waiting=self.writer.waiting)

    async def probe(self) -> None:
        with translated():
            self._reader.execute("SELECT 1 FROM versions").fetchone()

    async def try_write(self) -> None:
        def rewrite(connection: apsw.Connection) -> None:
            same: int = connection.execute("PRAGMA user_version").get
            connection.execute(f"PRAGMA user_version = {same}")  # writes one page to the log, unchanged

        await self.writer.submit(rewrite)

    async def note_serving(self, *, with_valkey: bool) -> None:
        """The counters of a file are those of its one process."""

    async def served_with_valkey(self) -> bool:
        return False

    async def is_empty(self) -> bool:
        return not await self._database.read(has_accounts())

    async def purge(self, now_ms: int) -> None:
        await purge(self._database, now_ms)
        await purge_sign_ins(self._database, now_ms)
        await self.uploads.purge()

    async def close(self) -> None:
        await self.writer.drain()
        await asyncio.sleep(0)  # the last group is answered by callbacks that are due now
        self._reader.close()
        # The writing connection last: its close moves the log into the file.
        self.writer.close()
