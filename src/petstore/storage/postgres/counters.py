"""The batches of counters and usage in PostgreSQL, also of several processes."""

from __future__ import annotations

from collections.abc import Sequence

from petstore.core.clock import Clock
from petstore.core.durations import DAY_MS
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows, oldest_day
from petstore.storage.postgres.database import Database
from petstore.transactions.rows import BAN_STATE, WINDOWS, batch_rows, select
from petstore.transactions.script import moment_ms
from petstore.transactions.usage import load_counters

_WINDOWS, _BAN_STATE = select(WINDOWS), select(BAN_STATE)


def _set(columns: Sequence[str]) -> str:
    return f"UPDATE SET ({select(columns)}) = ({select([f'excluded.{column}' for column in columns])})"


# The counts of a single process replace the rows, even with earlier times: its clock may be set back.
_REPLACE = (_set(WINDOWS), _set(BAN_STATE), "excluded.last_used_at_ms")
# The counts that several processes have read arrive in any order. A window that began more than a minute in
# the future comes from a clock that was ahead: every other window replaces it.
_AHEAD_MS = f"{moment_ms(22)} + 60000"
_KEEP_THE_LATER = (
    "UPDATE SET (minute_opened_ms, minute_used) = (SELECT * FROM (VALUES"
    " (kept.minute_opened_ms, kept.minute_used), (excluded.minute_opened_ms, excluded.minute_used))"
    f" AS either (opened_ms, used) ORDER BY opened_ms > {_AHEAD_MS}, opened_ms DESC, used DESC LIMIT 1),"
    " (day, day_used) = (SELECT * FROM (VALUES (kept.day, kept.day_used), (excluded.day, excluded.day_used))"
    f" AS either (day, used) ORDER BY day * {DAY_MS} > {_AHEAD_MS}, day DESC, used DESC LIMIT 1)",
    f"{_set(BAN_STATE)} WHERE"
    " (excluded.pardoned_ms, excluded.banned_from_ms, excluded.strikes_opened_ms, excluded.strikes)"
    " >= (kept.pardoned_ms, kept.banned_from_ms, kept.strikes_opened_ms, kept.strikes)"
    f" OR kept.banned_from_ms > {_AHEAD_MS} AND excluded.banned_from_ms <= {_AHEAD_MS}"
    " AND excluded.pardoned_ms >= kept.pardoned_ms",
    "greatest(kept.last_used_at_ms, excluded.last_used_at_ms)",
)


def _batch(windows: str, standings: str, last_used: str) -> str:
    """One statement, so one transaction and one round trip. Rows come sorted: writers meet in one order."""
    return f"""
WITH windows AS (
    INSERT INTO account_windows AS kept (account_id, {_WINDOWS})
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
    ON CONFLICT (account_id) DO {windows}
), standings AS (
    INSERT INTO key_standings AS kept (key_id, {_BAN_STATE})
    SELECT * FROM unnest($6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
        $12::bigint[], $13::bigint[], $14::bigint[])
    ON CONFLICT (key_id) DO {standings}
), days AS (
    INSERT INTO usage_days AS kept (account_id, day, requests, refused, deprecated)
    SELECT * FROM unnest($15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[])
    ON CONFLICT (account_id, day) DO UPDATE SET requests = kept.requests + excluded.requests,
        refused = kept.refused + excluded.refused, deprecated = kept.deprecated + excluded.deprecated
)
INSERT INTO key_activity AS kept (key_id, last_used_at_ms) SELECT * FROM unnest($20::bigint[], $21::bigint[])
ON CONFLICT (key_id) DO UPDATE SET last_used_at_ms = {last_used}
"""


_SAVE = _batch(*_REPLACE)
_MERGE = _batch(*_KEEP_THE_LATER)


def _arguments(state: LimiterState, usage: UsageChanges) -> list[list[int]]:
    """The columns of each table's rows, sorted by row."""
    return [
        column
        for rows, width in zip(batch_rows(state, usage), (5, 9, 5, 2), strict=True)
        for column in (map(list, zip(*sorted(rows), strict=True)) if rows else [[]] * width)
    ]


class PostgresCounters:
    """Implements counters.MergingCounterStore."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def load(self, now_ms: int) -> LimiterState:
        return await self._database.read(load_counters(now_ms))

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        await self._database.write_rows(_SAVE, *_arguments(state, usage))

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        await self._database.write_rows(_MERGE, *_arguments(state, usage), self._clock.pinned_ms())

    async def load_for(
        self, account_id: int, key_id: int, now_ms: int
    ) -> tuple[AccountWindows | None, BanState | None]:
        row = await self._database.fetch_row(
            f"SELECT {_WINDOWS}, {_BAN_STATE} FROM (VALUES ($1::bigint, $2::bigint))"
            " AS asked (account_id, key_id)"
            " LEFT JOIN account_windows w ON w.account_id = asked.account_id AND w.day >= $3"
            " LEFT JOIN key_standings s ON s.key_id = asked.key_id",
            account_id,
            key_id,
            oldest_day(now_ms),
        )
        windows = AccountWindows(*row[:4]) if row[0] is not None else None
        ban = BanState(*row[4:]) if row[4] is not None else None
        return windows, ban
