"""Counters and usage in SQLite: the counter store that the limiter survives by, and the reports."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from petstore.core.durations import DAY_MS
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import DailyUsage, KeyBan, UsageChanges, UsageReport
from petstore.core.limits.windows import AccountWindows, oldest_day
from petstore.storage.sqlite.connection import translated
from petstore.storage.sqlite.writer import Writer


class SqliteCounters:
    """Implements counters.CounterStore."""

    def __init__(self, reader: apsw.Connection, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def load(self, now_ms: int) -> LimiterState:
        with translated():
            windows = self._reader.execute(
                "SELECT account_id, minute_opened_ms, minute_used, day, day_used FROM account_windows"
                " WHERE day >= ?",
                (oldest_day(now_ms),),
            )
            bans = self._reader.execute(
                "SELECT key_id, refused_reset_at, first_refused_ms, strikes, strikes_opened_ms, level,"
                " banned_from_ms, banned_until_ms, pardoned_ms FROM key_standings"
            )
            return LimiterState(
                {row[0]: AccountWindows(*row[1:]) for row in windows},
                {row[0]: BanState(*row[1:]) for row in bans},
            )

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


class SqliteUsage:
    """Implements usage.UsageRepository."""

    def __init__(self, reader: apsw.Connection) -> None:
        self._reader = reader

    async def report(self, account_id: int, now_ms: int, days: int = 30) -> UsageReport:
        with translated():
            row: tuple[Any, ...] | None = self._reader.execute(
                "SELECT minute_opened_ms, minute_used, day, day_used FROM account_windows"
                " WHERE account_id = ?",
                (account_id,),
            ).fetchone()
            bans: list[tuple[Any, ...]] = self._reader.execute(
                "SELECT k.id, k.display, s.level, s.banned_until_ms FROM api_keys k"
                " JOIN key_standings s ON s.key_id = k.id"
                " WHERE k.account_id = ? AND s.banned_until_ms > ? AND s.pardoned_ms >= k.pardoned_at_ms"
                " ORDER BY k.id",
                (account_id, now_ms),
            ).fetchall()
            daily: list[tuple[Any, ...]] = self._reader.execute(
                "SELECT day, requests, refused, deprecated FROM usage_days"
                " WHERE account_id = ? AND day > ? ORDER BY day DESC",
                (account_id, now_ms // DAY_MS - days),
            ).fetchall()
        used = AccountWindows(*row) if row else AccountWindows()
        return UsageReport(used, [KeyBan(*ban) for ban in bans], [DailyUsage(*day) for day in daily])
