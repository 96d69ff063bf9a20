"""Versions without shared counters: PostgreSQL's own snapshots, asked for once for all who wait.

Equal snapshots see equal data. Every commit makes another one, that of counters too: what is kept is
forgotten more often than it had to be, and never too late.
"""

from __future__ import annotations

import asyncio

from petstore.storage.postgres.database import Database
from petstore.versions import UNKNOWN, Versions

# With the moment of the server's start: a copy that takes over may count on with the same numbers.
_SNAPSHOT = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text"


class SnapshotSource:
    """Implements versions.VersionSource.

    One question is on its way at a time. Whoever comes meanwhile shares the next one, which is sent later
    than they came: so each answer is as new as every request that uses it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = UNKNOWN
        self._next: asyncio.Task[Versions] | None = None
        self._sent: asyncio.Task[Versions] | None = None

    async def current(self) -> Versions:
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._ask(self._sent))
            self._next.add_done_callback(_look_at)
        return await asyncio.shield(self._next)  # others wait for it too

    def fresh(self) -> None:
        """The server has to be asked."""

    def known(self) -> Versions:
        return self._known

    async def _ask(self, before: asyncio.Task[Versions] | None) -> Versions:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._sent, self._next = self._next, None
        row = await self._database.fetch_row(_SNAPSHOT)
        token = (row[0], row[1])
        self._known = Versions(token, token)
        return self._known


def _look_at(task: asyncio.Task[Versions]) -> None:
    """Its requests may all be gone: then nobody else asks how it ended."""
    if not task.cancelled():
        task.exception()
