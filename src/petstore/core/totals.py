"""Sums over the whole store for its people: animals, orders, accounts, today's requests, who is at a limit.

Counting reads every animal, so nobody waits for it: see console/statistics.py.
"""

from __future__ import annotations

from typing import Protocol
from zoneinfo import ZoneInfo

import msgspec

from petstore.core.limits.usage import DailyUsage, DeprecatedCalls
from petstore.core.orders import OrderStatus
from petstore.core.pets import PetStatus
from petstore.core.zones import day_at, day_begins_ms

# Categories that totals have.
CATEGORIES_MAX = 200
# Accounts that totals name; one more is listed, so that a reader sees that there are others.
NAMED_MAX = 5
# Weeks of sales, this one included.
WEEKS = 12


def weeks_at(now_ms: int, zone: ZoneInfo) -> tuple[int, ...]:
    """When the last WEEKS weeks begin, this one included, and the next one: Mondays, 00:00, as Unix ms."""
    today = day_at(now_ms, zone)
    monday = today - (today + 3) % 7  # the epoch began on a Thursday
    return tuple(day_begins_ms(monday + 7 * week, zone) for week in range(1 - WEEKS, 2))


class NearLimit(msgspec.Struct, frozen=True):
    """An account that has used nine tenths of today's limit, or all of it."""

    id: int
    name: str
    used: int
    per_day: int


class Sales(msgspec.Struct, frozen=True):
    """Delivered orders, by their ship dates; none of a week that has not begun.

    `categories` has those with the most, at most CATEGORIES_MAX, the most first. A category is the animal's
    now; None stands for removed animals.
    """

    weeks: dict[int, int]  # by when each of WEEKS weeks begins, in order
    categories: dict[int | None, int]  # in all these weeks


class Totals(msgspec.Struct, frozen=True):
    """The sums of one count. Usage is as last written: about a second old."""

    pets: dict[PetStatus, int]
    # Animals of those with the most, at most CATEGORIES_MAX, the most first.
    categories: dict[int, dict[PetStatus, int]]
    orders: dict[OrderStatus, int]
    accounts: dict[str, int]  # by Account.state
    today: DailyUsage  # all accounts' on this UTC day
    banned_keys: int  # that only their ban stops
    near_limit: list[NearLimit]  # the fullest first, at most NAMED_MAX + 1
    deprecated_callers: list[DeprecatedCalls]  # in DEPRECATED_DAYS days, the most calls first
    sales: Sales


class TotalsRepository(Protocol):
    """Counts a store."""

    async def count(self, now_ms: int, zone: ZoneInfo) -> Totals:
        """Count everything, beside the event loop and beside the requests' connections. Weeks are the zone's.

        Ten million animals take seconds. Raises StoreUnavailable.
        """
