"""Usage for reports: requests, refusals and calls of the deprecated operation by account and UTC day.

Sums that limit nothing, collected in memory and written in batches.
"""

from __future__ import annotations

import msgspec

from petstore.core.durations import DAY_MS
from petstore.core.limits.windows import AccountWindows
from petstore.core.moments import month_of

# The operation that ends; its calls are counted.
DEPRECATED = "GET /pets/{petId}"
DEPRECATED_DAYS = 30
_REMINDED_DAYS = 365
DEPRECATED_NAMED = 100


class DailyUsage(msgspec.Struct, gc=False):
    """Counts of one account on one UTC day."""

    day: int  # since 1970-01-01
    requests: int = 0  # admitted ones
    refused: int = 0
    deprecated: int = 0  # calls of the deprecated operation, admitted and refused


class UsageChanges(msgspec.Struct):
    """Since the last batch: counts to add by (account id, day), and the last use of keys by id."""

    daily: dict[tuple[int, int], DailyUsage] = msgspec.field(default_factory=dict)
    last_used_ms: dict[int, int] = msgspec.field(default_factory=dict)

    def add(self, later: UsageChanges) -> None:
        """Add later changes."""
        for account_and_day, counts in later.daily.items():
            mine = self.daily.setdefault(account_and_day, DailyUsage(counts.day))
            mine.requests += counts.requests
            mine.refused += counts.refused
            mine.deprecated += counts.deprecated
        self.last_used_ms.update(later.last_used_ms)


class UsageMeter:
    """Counts in memory until the next batch: a write would cost more than the request itself."""

    def __init__(self) -> None:
        self._changes = UsageChanges()
        self._latest: dict[int, DailyUsage] = {}

    def count(self, account_id: int, key_id: int, now_ms: int, allowed: bool, deprecated: bool) -> None:
        """One authenticated request, admitted or refused."""
        counts, day = self._latest.get(account_id), now_ms // DAY_MS
        if counts is None or counts.day != day:
            counts = self._changes.daily.setdefault((account_id, day), DailyUsage(day))
            self._latest[account_id] = counts
        if allowed:
            counts.requests += 1
        else:
            counts.refused += 1
        if deprecated:
            counts.deprecated += 1
        self._changes.last_used_ms[key_id] = now_ms

    def drain(self) -> UsageChanges:
        """The counts since the last call."""
        changes, self._changes = self._changes, UsageChanges()
        self._latest.clear()
        return changes


class KeyBan(msgspec.Struct, frozen=True):
    """A ban that has not ended, for a report."""

    key_id: int
    display: str
    level: int
    banned_until_ms: int
    banned_from_ms: int


class BannedKey(msgspec.Struct, frozen=True):
    """A ban that has not ended, of a key that is neither revoked nor expired."""

    account_id: int
    account: str
    key_id: int
    display: str
    label: str
    level: int
    banned_until_ms: int


class DeprecatedCalls(msgspec.Struct, frozen=True):
    """An account's calls of the deprecated operation in the last DEPRECATED_DAYS days."""

    account_id: int
    account: str
    calls: int
    last_day: int  # since 1970-01-01


class DeprecatedUse(msgspec.Struct, frozen=True):
    """Who calls the deprecated operation, the most calls first; at most DEPRECATED_NAMED accounts.

    `is_cut`: there are more accounts, or too many days to read them all; then the newest days are counted.
    """

    callers: list[DeprecatedCalls]
    is_cut: bool


class UsageReport(msgspec.Struct, frozen=True):
    """An account's use as last written: about a second behind a running server at most."""

    windows: AccountWindows
    bans: list[KeyBan]
    days: list[DailyUsage]


def every_day(counted: list[DailyUsage], today: int, days: int, used_today: int) -> list[DailyUsage]:
    """The last `days` days, newest first, those without requests too.

    Counts are written about once a second. `used_today` is the window's, which is exact: today's requests are
    never fewer.
    """
    by_day = {counts.day: counts for counts in counted}
    listed = [by_day.get(day) or DailyUsage(day) for day in range(today, today - days, -1)]
    listed[0].requests = max(listed[0].requests, used_today)
    return listed


def reminder_days(today: int, removal_day: int) -> tuple[int, int]:
    """The UTC days since 1970-01-01 that one reminder of the removal is about, the second one excluded.

    This month in the last year, this week from Monday on in the last month; at other times both are the same.
    """
    left = removal_day - today
    if not 0 < left <= _REMINDED_DAYS:
        return today, today
    if left <= DEPRECATED_DAYS:
        monday = today - (today + 3) % 7  # 1970-01-01 was a Thursday
        return monday, monday + 7
    first, last = month_of(today)
    return first, last + 1
