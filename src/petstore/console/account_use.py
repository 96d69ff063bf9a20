"""The chart of an account's use."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from petstore.core.durations import DAY_SECONDS
from petstore.core.limits.usage import DailyUsage


def chart_of(days: Sequence[DailyUsage]) -> str:
    """JSON for static/usage.js, oldest first: Unix times in seconds, requests, refused, deprecated."""
    rows = [(each.day * DAY_SECONDS, each.requests, each.refused, each.deprecated) for each in days]
    return msgspec.json.encode(list(zip(*reversed(rows), strict=True))).decode()
