"""Versions without shared counters: PostgreSQL's own snapshots, asked for once for all who wait.

Within one life of the server equal snapshots see equal data. Every commit makes another one, that of
counters too: what is kept is forgotten more often than it had to be, and never too late.
"""

from __future__ import annotations

from petstore.core.errors import StoreUnavailable
from petstore.core.versions import NO_VERSIONS, Versions
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import is_refused
from petstore.storage.postgres.sharing import Shared

# A life of the server ends with its restart, with the takeover by a copy, and with the crash of one of its
# processes. After a crash it recovers without a new moment of start, and gives out again the transaction ids
# of which nothing had reached the disk: the same snapshot can then stand for other data. But every recovery
# ends with a checkpoint behind all of the log that had reached the disk, so behind the checkpoint before it.
# Checkpoints in between, about one in five minutes, only make another version. No connection of ours has to
# be open at the crash or has to notice it, and none is taken for what it was, also behind PgBouncer: the
# answer itself says in which life it was given.
_SNAPSHOT = (
    "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text, checkpoint_lsn::text"
    " FROM pg_control_checkpoint()"
)


class SnapshotVersions:
    """Implements versions.VersionSource."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = NO_VERSIONS
        self._asking: Shared[None, Versions] = Shared(self._ask)

    async def current(self) -> Versions:
        return await self._asking.answer(None)

    def try_current(self) -> None:
        """The server has to be asked."""

    def known(self) -> Versions:
        return self._known

    async def _ask(self, _: set[None]) -> Versions:
        try:
            token = tuple(await self._database.fetch_row(_SNAPSHOT))
        except StoreUnavailable as error:
            if not is_refused(error.__cause__):
                raise
            # Somebody took PUBLIC's right to the function away: then nothing can be kept.
            self._known = NO_VERSIONS
        else:
            self._known = Versions(token, token)
        return self._known
