"""The PostgreSQL store: a pool of connections joined with the repositories that use it."""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.keys import KeyRepository
from petstore.core.limits.usage import UsageRepository
from petstore.core.pets import IDEMPOTENCY_KEPT_MS, PetRepository
from petstore.core.versions import NoPublisher, Publisher, VersionSource
from petstore.storage.observer import StoreLoad, StoreObserver
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.clocks import moment_ms, steered_ms
from petstore.storage.postgres.counters import PostgresCounters, PostgresUsage
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import is_refused
from petstore.storage.postgres.keys import PostgresKeys
from petstore.storage.postgres.pets import PostgresPets
from petstore.storage.postgres.schema import prepare
from petstore.storage.postgres.sharing import Shared
from petstore.storage.postgres.snapshots import SnapshotVersions

_PURGE_AT_A_TIME = 1_000
# Several processes may do this at once: each takes what no other one holds.
_PURGE = f"""
DELETE FROM idempotency_keys WHERE (account_id, key) IN (
    SELECT account_id, key FROM idempotency_keys WHERE created_at_ms <= {moment_ms(1)} - {IDEMPOTENCY_KEPT_MS}
    ORDER BY created_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
) RETURNING 1
"""


_TRY_WRITE = "INSERT INTO usage_days SELECT * FROM usage_days WHERE false"
_NOTE_SHARING = "INSERT INTO shared_counters DEFAULT VALUES ON CONFLICT DO NOTHING"


class PostgresStore:
    """Implements storage.Store for the database at `url`, whose schema it creates where there is none."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        options: PostgresOptions,
        publisher: Publisher | None = None,
        observer: StoreObserver | None = None,
    ) -> None:
        prepare(url, options)
        database = self._database = Database(url, clock, options, publisher or NoPublisher(), observer)
        self.pets: PetRepository = PostgresPets(database, clock)
        self.keys: KeyRepository = PostgresKeys(database, clock)
        self.usage: UsageRepository = PostgresUsage(database)
        self.counters = self.merging_counters = PostgresCounters(database, clock)
        self.versions: VersionSource = SnapshotVersions(database)
        self._shares_counters = False
        self._asks_server = steered_ms(clock) is None
        self._probing: Shared[None, None] = Shared(self._probe)

    def load(self) -> StoreLoad:
        return self._database.load()

    async def probe(self) -> None:
        await self._probing.answer(None)

    async def _probe(self, _: set[None]) -> None:
        await self._database.fetch("SELECT 1 FROM schema_migrations LIMIT 1")

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

    async def is_empty(self) -> bool:
        return not await self._database.fetch("SELECT 1 FROM accounts LIMIT 1")

    async def note_counters(self, *, shared: bool) -> None:
        self._shares_counters = shared
        await self._database.write_rows(_NOTE_SHARING if shared else "DELETE FROM shared_counters")

    async def has_shared_counters(self) -> bool:
        return bool(await self._database.fetch("SELECT 1 FROM shared_counters"))

    async def purge(self, now_ms: int) -> None:
        if self._shares_counters:  # a process without them, or an older dump, may have taken the note away
            await self._database.write_rows(_NOTE_SHARING)
        # A thousand in a transaction, so that requests' writes find their way in between.
        steered = None if self._asks_server else now_ms
        while len(await self._database.write_rows(_PURGE, steered, _PURGE_AT_A_TIME)) == _PURGE_AT_A_TIME:
            pass

    async def close(self) -> None:
        await self._database.close()
