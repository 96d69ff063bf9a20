"""Bills: for each account and UTC day the plan that applied and the requests made.

The journal has the changes of plans, so the plan of a past day is today's with the later changes undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol

import msgspec

from petstore.core.durations import DAY_MS
from petstore.core.limits.plans import Plan
from petstore.core.limits.usage import DailyUsage
from petstore.core.moments import iso_day

_iso_day = lru_cache(maxsize=4_096)(iso_day)


class BilledDay(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One account on one UTC day. The plan is that at the day's end; requests are the admitted ones."""

    account_id: int
    account: str  # its name today
    date: str
    plan: str
    per_minute: int
    per_day: int
    requests: int
    refused: int
    deprecated: int  # of both


class BilledPeriod(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The sum of an account's days in a row on one plan."""

    account_id: int
    account: str
    first: str = msgspec.field(name="from")
    last: str = msgspec.field(name="to")
    days: int
    plan: str
    per_minute: int
    per_day: int
    requests: int
    refused: int
    deprecated: int


class PlanChange(msgspec.Struct, frozen=True):
    """A change of plan: the members of the earlier plan that were others, by their names in the API."""

    at_ms: int
    before: dict[str, Any]


class BilledAccount(msgspec.Struct):
    """What a store has of an account: its plan now, every change of it and the days counted, oldest first."""

    id: int
    name: str
    plan: Plan
    created_at_ms: int
    closed_at_ms: int | None
    changes: list[PlanChange] = []
    counted: list[DailyUsage] = []

    def bill(self, first: int, last: int) -> Iterator[BilledDay]:
        """A row for each day from `first` to `last` on which the account was open or made requests."""
        counted = {counts.day: counts for counts in self.counted}
        begins, ends = max(first, self.created_at_ms // DAY_MS), last
        if self.closed_at_ms is not None:
            ends = min(last, self.closed_at_ms // DAY_MS)
        later = self._plans()
        _, plan = later.pop()
        for day in range(min([begins, *counted]), max([ends, *counted]) + 1):
            while later and later[-1][0] <= day:
                _, plan = later.pop()
            counts = counted.get(day) or DailyUsage(day)
            yield BilledDay(
                self.id,
                self.name,
                _iso_day(day),
                plan.name,
                plan.per_minute,
                plan.per_day,
                counts.requests,
                counts.refused,
                counts.deprecated,
            )

    def _plans(self) -> list[tuple[int, Plan]]:
        """Each plan with the first day that ended on it, newest first; the oldest one has no first day.

        A change that the clock dates after a later one was made on that one's day at the latest.
        """
        found: list[tuple[int, Plan]] = []
        plan, day = self.plan, self.changes[-1].at_ms // DAY_MS if self.changes else 0
        for change in reversed(self.changes):
            day = min(day, change.at_ms // DAY_MS)
            found.append((day, plan))
            before = change.before
            plan = Plan(
                before.get("plan", plan.name),
                before.get("perMinute", plan.per_minute),
                before.get("perDay", plan.per_day),
            )
        return [*found, (0, plan)]


def sum_up(days: Iterable[BilledDay]) -> Iterator[BilledPeriod]:
    """One row for days in a row of the same account and plan."""
    for key, same in groupby(days, lambda day: (day.account_id, day.plan, day.per_minute, day.per_day)):
        rows = list(same)
        yield BilledPeriod(
            rows[0].account_id,
            rows[0].account,
            rows[0].date,
            rows[-1].date,
            len(rows),
            *key[1:],
            sum(row.requests for row in rows),
            sum(row.refused for row in rows),
            sum(row.deprecated for row in rows),
        )


class BillingRepository(Protocol):
    """Bills from a store."""

    async def accounts(self, first: int, last: int, *, after: int, limit: int) -> list[BilledAccount]:
        """At most `limit` accounts with an id above `after`, by id, with their counts from `first` to `last`.

        Closed and suspended ones too. Days are UTC days since 1970-01-01. Raises StoreUnavailable.
        """
        ...
