"""Usage for reports: requests, refusals and calls of the deprecated operation by account and UTC day.

These are sums, not limits: what decides is quota.py. Deltas are collected here and written in batches.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

MINUTE_MS = 60_000
DAY_MS = 86_400_000


class AccountWindows(msgspec.Struct, gc=False):
    """What an account has used: in the minute window that opened at `minute_opened_ms`, and on `day`.

    `day` counts UTC days since the epoch. The minute window opens at the whole second of its first
    request, so that its reset is a whole second too: `X-RateLimit-Reset` is literally the moment.
    """

    minute_opened_ms: int = -MINUTE_MS
    minute_used: int = 0
    day: int = 0
    day_used: int = 0


def oldest_day(now_ms: int) -> int:
    """The first UTC day (since the epoch) whose windows can still matter.

    A day back and any day ahead: the machine's clock may have been set while the service was down.
    """
    return now_ms // DAY_MS - 1


class DailyUsage(msgspec.Struct, gc=False):
    """Counts of one account on one UTC day (days since the epoch)."""

    day: int
    requests: int = 0
    refused: int = 0
    deprecated: int = 0


class UsageChanges(msgspec.Struct):
    """What happened since the last batch: counts to add by (account, day), last use by key."""

    daily: dict[tuple[int, int], DailyUsage] = msgspec.field(default_factory=dict)
    last_used_ms: dict[int, int] = msgspec.field(default_factory=dict)

    def add(self, later: UsageChanges) -> None:
        """Add what happened later."""
        for place, counts in later.daily.items():
            mine = self.daily.setdefault(place, DailyUsage(counts.day))
            mine.requests += counts.requests
            mine.refused += counts.refused
            mine.deprecated += counts.deprecated
        self.last_used_ms.update(later.last_used_ms)


class UsageMeter:
    """Counts in memory until the next batch; a write in the request would cost more than the request."""

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
        """What was counted since the last call."""
        changes, self._changes = self._changes, UsageChanges()
        self._latest.clear()
        return changes


class KeyBan(msgspec.Struct, frozen=True):
    """A ban that stands, for a report."""

    key_id: int
    display: str
    level: int
    banned_until_ms: int


class UsageReport(msgspec.Struct, frozen=True):
    """What was written of an account's use: at most about a second behind a running server."""

    windows: AccountWindows
    bans: list[KeyBan]
    days: list[DailyUsage]


class UsageRepository(Protocol):
    """Reports from a store."""

    async def report(self, account_id: int, now_ms: int, days: int = 30) -> UsageReport:
        """The windows as last written, standing bans and the last `days` days, newest first."""
        ...
