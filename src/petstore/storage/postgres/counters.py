"""The batches of counters and usage in PostgreSQL, also of several processes."""

from __future__ import annotations

from collections.abc import Sequence

from petstore.core.clock import Clock
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import WINDOWS, WindowKind
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows, oldest_day
from petstore.storage.postgres.database import Database
from petstore.transactions.rows import ACCOUNT_WINDOWS, BAN_STATE, DAILY_USAGE, batch_rows, select
from petstore.transactions.script import moment_ms
from petstore.transactions.usage import load_counters

_WINDOWS, _BAN_STATE = select(ACCOUNT_WINDOWS), select(BAN_STATE)


def _set(columns: Sequence[str]) -> str:
    return f"UPDATE SET ({select(columns)}) = ({select([f'excluded.{column}' for column in columns])})"


# How many columns each table's rows in a batch have, in the order of `batch_rows`.
_WIDTHS = (1 + len(ACCOUNT_WINDOWS), 1 + len(BAN_STATE), 1 + len(DAILY_USAGE), 2)


def _unnest(table: int) -> str:
    """The columns of the table at this index of `batch_rows`, as arguments of a statement."""
    first = 1 + sum(_WIDTHS[:table])
    arrays = select([f"${number}::bigint[]" for number in range(first, first + _WIDTHS[table])])
    return f"SELECT * FROM unnest({arrays})"


# The counts of a single process replace the rows, even with earlier times: its clock may be set back.
_REPLACE = (_set(ACCOUNT_WINDOWS), _set(BAN_STATE), "excluded.last_used_at_ms")
# The counts that several processes have read arrive in any order. A window that began more than a minute in
# the future comes from a clock that was ahead: every other window replaces it.
_AHEAD_MS = f"{moment_ms(1 + sum(_WIDTHS))} + 60000"


def _later(window: WindowKind) -> str:
    opened, used = window.opened_column, window.used_column
    return (
        f"({opened}, {used}) = (SELECT * FROM (VALUES"
        f" (kept.{opened}, kept.{used}), (excluded.{opened}, excluded.{used})) AS either (opened, used)"
        f" ORDER BY opened * {window.stored_ms} > {_AHEAD_MS}, opened DESC, used DESC LIMIT 1)"
    )


_KEEP_THE_LATER = (
    f"UPDATE SET {select([_later(window) for window in WINDOWS])}",
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
    {_unnest(0)}
    ON CONFLICT (account_id) DO {windows}
), standings AS (
    INSERT INTO key_standings AS kept (key_id, {_BAN_STATE})
    {_unnest(1)}
    ON CONFLICT (key_id) DO {standings}
), days AS (
    INSERT INTO usage_days AS kept (account_id, day, requests, refused, deprecated)
    {_unnest(2)}
    ON CONFLICT (account_id, day) DO UPDATE SET requests = kept.requests + excluded.requests,
        refused = kept.refused + excluded.refused, deprecated = kept.deprecated + excluded.deprecated
)
INSERT INTO key_activity AS kept (key_id, last_used_at_ms) {_unnest(3)}
ON CONFLICT (key_id) DO UPDATE SET last_used_at_ms = {last_used}
"""


_SAVE = _batch(*_REPLACE)
_MERGE = _batch(*_KEEP_THE_LATER)


def _arguments(state: LimiterState, usage: UsageChanges) -> list[list[int]]:
    """The columns of each table's rows, sorted by row."""
    return [
        column
        for rows, width in zip(batch_rows(state, usage), _WIDTHS, strict=True)
        for column in (map(list, zip(*sorted(rows), strict=True)) if rows else [[]] * width)
    ]


class PostgresCounters:
    """Implements counters.MergingCounterStore."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def load(self, now_ms: int, bans_since_ms: int = -1) -> LimiterState:
        return await self._database.read(load_counters(now_ms, bans_since_ms))

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        await self._database.write_rows(_SAVE, *_arguments(state, usage))

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        await self._database.write_rows(_MERGE, *_arguments(state, usage), self._clock.pinned_ms())

    async def load_for(
        self, now_ms: int, account_id: int, key_id: int
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
        used, ban_state = row[: len(ACCOUNT_WINDOWS)], row[len(ACCOUNT_WINDOWS) :]
        windows = AccountWindows.of(*used) if used[0] is not None else None
        ban = BanState(*ban_state) if ban_state[0] is not None else None
        return windows, ban
