"""Versions without Valkey: PostgreSQL's snapshots, one query for all waiting requests.

Between two recoveries of the server equal snapshots see equal data. Every commit makes another snapshot, also
a commit of counters: cached values are dropped more often than necessary, and never too late.
"""

from __future__ import annotations

from petstore.core.errors import StoreUnavailable
from petstore.core.versions import NO_VERSIONS, Versions
from petstore.storage.postgres.coalescing import CoalescedQuery
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import is_refused

# Equal snapshots see equal data only between two recoveries. After the crash of one of its processes
# PostgreSQL recovers without a new start time and reuses the transaction ids that had not reached the disk:
# the same snapshot may see other data. Every recovery ends with a checkpoint beyond all of the log on
# the disk, so its position is new. Ordinary checkpoints, about one in five minutes, just make a new version.
# The row itself shows the recovery, also behind PgBouncer, where no connection breaks.
_SNAPSHOT = (
    "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text, checkpoint_lsn::text"
    " FROM pg_control_checkpoint()"
)


class SnapshotVersions:
    """Implements versions.VersionSource."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = NO_VERSIONS
        self._asking: CoalescedQuery[None, Versions] = CoalescedQuery(self._ask)

    async def current(self) -> Versions:
        return await self._asking.answer(None)

    def try_current(self) -> None:
        """None: only the server knows."""

    def known(self) -> Versions:
        return self._known

    async def _ask(self, _: set[None]) -> Versions:
        try:
            token = tuple(await self._database.fetch_row(_SNAPSHOT))
        except StoreUnavailable as error:
            if not is_refused(error.__cause__):
                raise
            # PUBLIC's right to pg_control_checkpoint() was revoked: nothing can be cached.
            self._known = NO_VERSIONS
        else:
            self._known = Versions(token, token)
        return self._known
