"""Sums over the whole store for its people: animals, orders, accounts, today's requests, who is at a limit.

Counting reads every animal, so nobody waits for it: see console/statistics.py.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from petstore.core.limits.usage import DailyUsage, DeprecatedCalls
from petstore.core.orders import OrderStatus
from petstore.core.pets import PetStatus

# Categories that totals have.
CATEGORIES_MAX = 200
# Accounts that totals name; one more is listed, so that a reader sees that there are others.
NAMED_MAX = 5


class NearLimit(msgspec.Struct, frozen=True):
    """An account that has used nine tenths of today's limit, or all of it."""

    id: int
    name: str
    used: int
    per_day: int


class Totals(msgspec.Struct, frozen=True):
    """The sums of one count. Usage is as last written: about a second old."""

    pets: dict[PetStatus, int]
    categories: dict[int, int]  # animals of those with the most, at most CATEGORIES_MAX, the most first
    orders: dict[OrderStatus, int]
    accounts: dict[str, int]  # by Account.state
    today: DailyUsage  # of all accounts, on this UTC day
    banned_keys: int  # that only their ban stops
    near_limit: list[NearLimit]  # the fullest first, at most NAMED_MAX + 1
    deprecated_callers: list[DeprecatedCalls]  # the most calls first, of DEPRECATED_DAYS days


class TotalsRepository(Protocol):
    """Counts a store."""

    async def count(self, now_ms: int) -> Totals:
        """Count everything, beside the event loop and beside the requests' connections.

        Ten million animals take seconds. Raises StoreUnavailable.
        """
        ...
