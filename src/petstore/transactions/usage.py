"""Reports of an account's use, bans in force, and the counters that a limiter starts with."""

from __future__ import annotations

from collections.abc import Iterable

from petstore.core.durations import DAY_MS
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import (
    DEPRECATED_DAYS,
    DEPRECATED_NAMED,
    BannedKey,
    DailyUsage,
    DeprecatedCalls,
    DeprecatedUse,
    KeyBan,
    UsageReport,
)
from petstore.core.limits.windows import AccountWindows, oldest_day
from petstore.core.values import INT64_MAX
from petstore.transactions.rows import ACCOUNT_WINDOWS, BAN_STATE, DAILY_USAGE, placeholders, select
from petstore.transactions.script import Repository, Script, padded, read, reads, statement

_ALL_WINDOWS = statement(f"SELECT account_id, {select(ACCOUNT_WINDOWS)} FROM account_windows WHERE day >= $1")
_ALL_BANS = statement(
    f"SELECT key_id, {select(BAN_STATE)} FROM key_standings"
    " WHERE first_refused_ms > $1 OR banned_until_ms > $1"
)
_WINDOWS = statement(f"SELECT {select(ACCOUNT_WINDOWS)} FROM account_windows WHERE account_id = $1")
_BANS_WHERE = (
    "SELECT k.id, k.display, s.level, s.banned_until_ms, s.banned_from_ms"
    " FROM api_keys k JOIN key_standings s ON s.key_id = k.id"
    " WHERE s.banned_until_ms > $1 AND s.pardoned_ms >= k.pardoned_at_ms AND"
)
_BANS = statement(f"{_BANS_WHERE} k.account_id = $2 ORDER BY k.id")
_DAYS = statement(
    f"SELECT {select(DAILY_USAGE)} FROM usage_days WHERE account_id = $1 AND day > $2 ORDER BY day DESC"
)
# Every key whose ban ends after the time $1.
BANNED_SINCE = (
    "FROM key_standings s JOIN api_keys k ON k.id = s.key_id JOIN accounts a ON a.id = k.account_id"
    # The first two as the index by the end of bans has them.
    " WHERE s.banned_until_ms > 0 AND s.banned_until_ms > $1 AND s.pardoned_ms >= k.pardoned_at_ms"
    " AND k.revoked_at_ms IS NULL"
)
# Every such key that only its ban stops then.
BANNED = f"{BANNED_SINCE} AND coalesce(k.expires_at_ms, $1 + 1) > $1"
BANS_IN_FORCE = statement(
    f"SELECT a.id, a.name, k.id, k.display, k.label, s.level, s.banned_until_ms {BANNED}"
    " AND (s.banned_until_ms, s.key_id) > ($2, $3) ORDER BY s.banned_until_ms, s.key_id LIMIT $4"
)
# Along the index of days with such calls, and no more of them than a page can wait for. The names come last:
# for that many accounts PostgreSQL would read all.
_DEPRECATED_READ = 2_000
_DEPRECATED = statement(
    "SELECT a.id, a.name, s.calls, s.last_day, s.days_read FROM"
    " (SELECT account_id, sum(deprecated) AS calls, max(day) AS last_day, sum(count(*)) OVER () AS days_read"
    " FROM (SELECT account_id, day, deprecated FROM usage_days WHERE deprecated > 0 AND day > $1"
    " ORDER BY day DESC LIMIT $2) AS used GROUP BY account_id ORDER BY calls DESC, account_id LIMIT $3) AS s"
    " JOIN accounts a ON a.id = s.account_id ORDER BY s.calls DESC, a.id"
)


def load_counters(now_ms: int, bans_since_ms: int) -> Script[LimiterState]:
    """See CounterStore.load."""
    windows = yield _ALL_WINDOWS, (oldest_day(now_ms),)
    bans = yield _ALL_BANS, (bans_since_ms,)
    return LimiterState(
        {row[0]: AccountWindows.of(*row[1:]) for row in windows}, {row[0]: BanState(*row[1:]) for row in bans}
    )


def deprecated_use(now_ms: int) -> Script[DeprecatedUse]:
    """The callers of the deprecated operation, as last written."""
    since = now_ms // DAY_MS - DEPRECATED_DAYS
    rows = yield _DEPRECATED, (since, _DEPRECATED_READ, DEPRECATED_NAMED + 1)
    callers = [DeprecatedCalls(row[0], row[1], int(row[2]), row[3]) for row in rows]
    is_cut = len(callers) > DEPRECATED_NAMED or any(row[4] >= _DEPRECATED_READ for row in rows)
    return DeprecatedUse(callers[:DEPRECATED_NAMED], is_cut)


def _days(now_ms: int, account_id: int, *, days: int) -> Script[list[DailyUsage]]:
    """The counted ones of the last `days` days, newest first."""
    rows = yield _DAYS, (account_id, now_ms // DAY_MS - days)
    return [DailyUsage(*row) for row in rows]


class Usage(Repository):
    """What accounts and keys have used, as last written."""

    days = reads(_days)
    deprecated_callers = reads(deprecated_use)

    @read
    def report(self, now_ms: int, account_id: int, *, days: int = 30) -> Script[UsageReport]:
        """The windows, the bans that have not ended, and the last `days` days, newest first."""
        windows = yield _WINDOWS, (account_id,)
        bans = yield _BANS, (now_ms, account_id)
        daily = yield from _days(now_ms, account_id, days=days)
        used = AccountWindows.of(*windows[0]) if windows else AccountWindows()
        return UsageReport(used, [KeyBan(*ban) for ban in bans], daily)

    @read
    def bans(
        self, now_ms: int, *, after: tuple[int, int] = (0, 0), limit: int = INT64_MAX
    ) -> Script[list[BannedKey]]:
        """The bans of all accounts at a time, by their end and the key's id.

        At most `limit`, those after the end (Unix time in ms) and id of `after`.
        """
        return [BannedKey(*row) for row in (yield BANS_IN_FORCE, (now_ms, *after, limit))]

    @read
    def bans_of(self, now_ms: int, key_ids: Iterable[int]) -> Script[list[KeyBan]]:
        """The bans of these keys that have not ended."""
        wanted = padded(tuple(key_ids))
        if not wanted:
            return []
        rows = yield statement(f"{_BANS_WHERE} k.id IN ({placeholders(len(wanted), 2)})"), (now_ms, *wanted)
        return [KeyBan(*row) for row in rows]
