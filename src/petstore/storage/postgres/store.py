"""The PostgreSQL store: a pool of connections joined with the repositories that use it."""

from __future__ import annotations

from collections.abc import Callable

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.events import Held
from petstore.core.versions import NoPublisher, Publisher
from petstore.storage.observer import Committed, StoreLoad
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import blockers
from petstore.storage.postgres.coalescing import CoalescedQuery
from petstore.storage.postgres.counters import PostgresCounters
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import is_refused
from petstore.storage.postgres.keys import PostgresKeys
from petstore.storage.postgres.pets import PostgresPets
from petstore.storage.postgres.schema import prepare
from petstore.storage.postgres.search import PostgresSearch
from petstore.storage.postgres.snapshots import SnapshotVersions
from petstore.storage.postgres.stock import PostgresStock
from petstore.storage.postgres.totals import PostgresTotals
from petstore.storage.store import Store

_TRY_WRITE = "INSERT INTO usage_days SELECT * FROM usage_days WHERE false"
_NOTE_VALKEY = "INSERT INTO served_with_valkey DEFAULT VALUES ON CONFLICT DO NOTHING"


class PostgresStore(Store):
    """The store of the database at `url`; creates the schema in an empty one."""

    _database: Database
    counters: PostgresCounters

    def __init__(
        self,
        url: str,
        clock: Clock,
        options: PostgresOptions,
        publisher: Publisher | None = None,
        committed: Committed = lambda *_: None,
    ) -> None:
        prepare(url, options)
        database = Database(url, clock, options, publisher or NoPublisher(), committed)
        super().__init__(
            database,
            clock,
            pets=PostgresPets(database, clock),
            stock=PostgresStock(database, clock, in_one=not options.prepared),
            keys=PostgresKeys(database, clock),
            totals=PostgresTotals(database),
            index=PostgresSearch(database),
        )
        self.counters = self.merging_counters = PostgresCounters(database, clock)
        self.versions = SnapshotVersions(database)
        self._with_valkey = False
        self._probing: CoalescedQuery[None, None] = CoalescedQuery(self._probe)

    def load(self) -> StoreLoad:
        pool = self._database.pool
        return StoreLoad(pool_in_use=pool.in_use, pool_waiting=pool.waiting)

    def on_commit(self, callback: Callable[[], None]) -> None:
        self._database.on_commit = callback

    async def probe(self) -> None:
        await self._probing.answer(None)

    async def _probe(self, _: set[None]) -> None:
        await self._database.fetch("SELECT 1 FROM schema_migrations LIMIT 1")

    async def held_events(self) -> Held | None:
        row = await self._database.fetch_row(blockers.HELD_EVENTS)
        return Held(float(row["seconds"]), blockers.describe(row)) if row else None

    async def try_write(self) -> None:
        try:
            await self._database.write_rows(_TRY_WRITE)
        except StoreUnavailable as error:
            if not is_refused(error.__cause__):
                raise
            raise ConfigurationError(
                "The database can't be used: the user of PETSTORE_DATABASE_URL may not write to it;"
                " GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO it."
            ) from error

    async def note_serving(self, *, with_valkey: bool) -> None:
        self._with_valkey = with_valkey
        await self._database.write_rows(_NOTE_VALKEY if with_valkey else "DELETE FROM served_with_valkey")

    async def served_with_valkey(self) -> bool:
        return bool(await self._database.fetch("SELECT 1 FROM served_with_valkey"))

    async def purge(self, now_ms: int) -> None:
        if self._with_valkey:  # a service without Valkey, or a restored dump, may have removed the row
            await self._database.write_rows(_NOTE_VALKEY)
        await super().purge(now_ms)

    async def close(self) -> None:
        await self._database.close()
