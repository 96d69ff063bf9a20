"""The batches of counters and usage in SQLite."""

from __future__ import annotations

import apsw
import msgspec

from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import UsageChanges
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.writer import Writer
from petstore.storage.transactions.usage import load_counters


class SqliteCounters:
    """Implements counters.CounterStore."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def load(self, now_ms: int) -> LimiterState:
        return await self._database.read(load_counters(now_ms))

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        def write(connection: apsw.Connection) -> None:
            _save_state(connection, state)
            _add_usage(connection, usage)

        await self._writer.submit(write)


def _write_all(connection: apsw.Connection, sql: str, rows: list[tuple[int, ...]]) -> None:
    """Run one statement over all rows, which it reads from `json_each(?)` as arrays.

    One call for each row would take Python's lock away from the event loop and give it back every time; this
    takes it once.
    """
    if rows:
        connection.execute(sql, (msgspec.json.encode(rows).decode("ascii"),))


def _values(count: int) -> str:
    """The first columns of each row."""
    return ", ".join(f"value ->> {column}" for column in range(count))


_SAVE_WINDOWS = f"INSERT OR REPLACE INTO account_windows SELECT {_values(5)} FROM json_each(?)"
_SAVE_STANDINGS = f"INSERT OR REPLACE INTO key_standings SELECT {_values(9)} FROM json_each(?)"
# Without the condition SQLite could not tell ON CONFLICT from the ON of a join.
_ADD_USAGE = (
    f"INSERT INTO usage_days SELECT {_values(5)} FROM json_each(?) WHERE true ON CONFLICT DO UPDATE SET"
    " requests = requests + excluded.requests, refused = refused + excluded.refused,"
    " deprecated = deprecated + excluded.deprecated"
)
_SAVE_ACTIVITY = f"INSERT OR REPLACE INTO key_activity SELECT {_values(2)} FROM json_each(?)"


def _save_state(connection: apsw.Connection, state: LimiterState) -> None:
    _write_all(
        connection,
        _SAVE_WINDOWS,
        [(account, *msgspec.structs.astuple(used)) for account, used in state.windows.items()],
    )
    _write_all(
        connection,
        _SAVE_STANDINGS,
        [(key, *msgspec.structs.astuple(ban)) for key, ban in state.bans.items()],
    )


def _add_usage(connection: apsw.Connection, usage: UsageChanges) -> None:
    _write_all(
        connection,
        _ADD_USAGE,
        [
            (account, day, counts.requests, counts.refused, counts.deprecated)
            for (account, day), counts in usage.daily.items()
        ],
    )
    _write_all(connection, _SAVE_ACTIVITY, list(usage.last_used_ms.items()))
