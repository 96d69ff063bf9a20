"""Names the sessions that hold up a migration, or events, for operators."""

from __future__ import annotations

import asyncpg

from petstore.storage.postgres.pool import Connection

_QUERY_LENGTH = 60
_SESSION = """a.pid, coalesce(a.usename, a.backend_type) AS who, a.application_name AS program,
    host(a.client_addr) AS address, a.xact_start AS since, a.state, a.query"""
# A session that was waited for is in a transaction from before the wait, or holds the lock of migrations.
# The server hides start, address and query of other users' sessions from a user without pg_read_all_stats.
_HOLDERS = """
SELECT DISTINCT {session}
FROM pg_locks l JOIN pg_stat_activity a USING (pid) LEFT JOIN pg_class c ON c.oid = l.relation
WHERE l.granted AND l.pid <> pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (c.relnamespace = current_schema()::regnamespace
            AND coalesce(a.xact_start <= clock_timestamp() - interval '{waited}', true)
        OR l.locktype = 'advisory' AND l.objsubid = 1
            AND (l.classid::bigint << 32 | l.objid::bigint) = {lock})
ORDER BY since NULLS LAST, pid LIMIT 3
"""
# The oldest entry that is committed and waits for an older transaction, and the session of that one: none
# while it is prepared. Entries of another cluster are from its future, or came with the data. The time of an
# entry is its writer's, whose clock may be behind: none is held for longer than that session's transaction.
HELD_EVENTS = f"""
SELECT extract(epoch FROM clock_timestamp())
    - greatest(held.at_ms / 1000.0, extract(epoch FROM a.xact_start)) AS seconds, {_SESSION}
FROM (SELECT at_ms FROM journal WHERE transaction >= pg_snapshot_xmin(pg_current_snapshot())
        AND transaction < pg_snapshot_xmax(pg_current_snapshot()) AND id > (SELECT base_id FROM data_set)
    ORDER BY journal.transaction, id LIMIT 1) AS held
LEFT JOIN pg_stat_activity a
    ON a.backend_xid::text::bigint = pg_snapshot_xmin(pg_current_snapshot())::text::bigint & 4294967295
"""


async def find(connection: Connection, lock: int, waited: str) -> list[str]:
    """The sessions, at most three, the oldest first: those that have used a table for `waited` (an
    interval) or longer, and the holder of the advisory lock.
    """
    async with connection.transaction():
        rows = await connection.fetch(_HOLDERS.format(session=_SESSION, lock=lock, waited=waited))
    return [describe(row) for row in rows]


def describe(row: asyncpg.Record) -> str:
    """A session in words."""
    if row["pid"] is None:
        return "a prepared transaction, or one that has just ended"
    origin = ", ".join(filter(None, (row["program"], row["address"])))
    parts = [f"session {row['pid']} of {row['who']}{f' ({origin})' if origin else ''}"]
    if row["since"]:
        parts.append(f"in a transaction since {row['since']:%Y-%m-%d %H:%M:%S} UTC")
    if row["state"]:  # else the query is hidden
        query = "".join(c if c.isprintable() else "?" for c in " ".join(row["query"].split()))
        parts.append(f"{row['state']}: {query[:_QUERY_LENGTH]}{'…' * (len(query) > _QUERY_LENGTH)}")
    return ", ".join(parts)
