"""The use of an account: its two windows now, and the days of the chart."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from petstore.core.accounts import Account
from petstore.core.durations import DAY_SECONDS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.quota import view
from petstore.core.limits.usage import DailyUsage
from petstore.core.limits.windows import AccountWindows, follow_clock, roll


class WindowUse(msgspec.Struct, frozen=True):
    """A window at this moment. `used` may exceed a limit that was lowered."""

    name: str
    limit: int
    used: int
    left: int
    resets_at_ms: int


def windows_of(account: Account, windows: AccountWindows, now_ms: int) -> list[WindowUse]:
    """The minute, then the UTC day."""
    caller = Caller(0, account.id, account.plan.limits)
    rolled = replace(windows)
    follow_clock(rolled, now_ms)
    roll(rolled, now_ms)
    return [
        WindowUse(window.name, window.limit, used, window.remaining, window.reset_at * SECOND_MS)
        for window, used in zip(
            view(windows, caller, now_ms), (rolled.minute_used, rolled.day_used), strict=True
        )
    ]


def chart_of(days: Sequence[DailyUsage]) -> str:
    """JSON for static/usage.js, oldest first: Unix times in seconds, requests, refused, deprecated."""
    rows = [(each.day * DAY_SECONDS, each.requests, each.refused, each.deprecated) for each in days]
    return msgspec.json.encode(list(zip(*reversed(rows), strict=True))).decode()
