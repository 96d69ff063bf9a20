"""The batches of counters and usage in SQLite."""

from __future__ import annotations

import apsw

from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import UsageChanges
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.writer import Writer
from petstore.transactions.rows import ACCOUNT_WINDOWS, BAN_STATE, DAILY_USAGE, batch_rows, select
from petstore.transactions.script import json_text
from petstore.transactions.usage import load_counters


def _all(table: str, *columns: str) -> str:
    """The rows of a JSON array of arrays, for an INSERT. Migrations add columns after the others."""
    values = ", ".join(f"value ->> {index}" for index, _ in enumerate(columns))
    return f"INTO {table} ({select(columns)}) SELECT {values} FROM json_each(?)"


# In the order of `batch_rows`.
_SAVE = (
    f"INSERT OR REPLACE {_all('account_windows', 'account_id', *ACCOUNT_WINDOWS)}",
    f"INSERT OR REPLACE {_all('key_standings', 'key_id', *BAN_STATE)}",
    # The condition is there since SQLite would else parse ON CONFLICT as the ON of a join.
    f"INSERT {_all('usage_days', 'account_id', *DAILY_USAGE)} WHERE true ON CONFLICT DO UPDATE SET"
    " requests = requests + excluded.requests, refused = refused + excluded.refused,"
    " deprecated = deprecated + excluded.deprecated",
    f"INSERT OR REPLACE {_all('key_activity', 'key_id', 'last_used_at_ms')}",
)


class SqliteCounters:
    """Implements counters.CounterStore."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def load(self, now_ms: int, bans_since_ms: int = -1) -> LimiterState:
        return await self._database.read(load_counters(now_ms, bans_since_ms))

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        def write(connection: apsw.Connection) -> None:
            # One call for all rows of a table: each call takes Python's lock away from the event loop once.
            for sql, rows in zip(_SAVE, batch_rows(state, usage), strict=True):
                if rows:
                    connection.execute(sql, (json_text(rows),))

        await self._writer.submit(write)
