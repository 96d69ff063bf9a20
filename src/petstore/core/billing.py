"""Bills: for each account and UTC day the plan that applied and the requests made.

The journal has the changes of plans, so the plan of a past day is today's with the later changes undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from petstore.core.durations import DAY_MS
from petstore.core.limits.plans import WINDOWS, Plan, limit_members
from petstore.core.limits.usage import DailyUsage
from petstore.core.moments import iso_day

_iso_day = lru_cache(maxsize=4_096)(iso_day)


def columns(summed: bool) -> tuple[str, ...]:
    """The names of `BilledDays.cells`, of sums or of single days."""
    dates = ("from", "to", "days") if summed else ("date",)
    limits = (window.limit_member for window in WINDOWS)
    return ("accountId", "account", *dates, "plan", *limits, "requests", "refused", "deprecated")


class BilledDays(msgspec.Struct, frozen=True, gc=False):
    """One account on one UTC day, with the plan at the day's end, or the sum of its days in a row on one
    plan: `date` is then the first, and `last` the last one. Requests are the admitted ones."""

    account_id: int
    account: str  # its name today
    date: str
    plan: Plan
    requests: int
    refused: int
    deprecated: int  # calls of the deprecated operation, admitted and refused
    last: str = ""
    days: int = 1

    def cells(self) -> tuple[str | int, ...]:
        """The values that CSV and JSON have under `columns`."""
        dates = (self.date, self.last, self.days) if self.last else (self.date,)
        plan = (self.plan.name, *self.plan.limits)
        return (self.account_id, self.account, *dates, *plan, self.requests, self.refused, self.deprecated)

    def members(self) -> dict[str, str | int]:
        """The row as JSON has it."""
        return dict(zip(columns(bool(self.last)), self.cells(), strict=True))


class PlanChange(msgspec.Struct, frozen=True):
    """A change of plan. `before` has the earlier values of what changed, by its names in the API."""

    at_ms: int
    before: dict[str, Any]

    def undone(self, plan: Plan) -> Plan:
        """The plan before the change that led to `plan`."""
        limits = limit_members(plan.limits)
        undone = tuple(self.before.get(member, limit) for member, limit in limits.items())
        return Plan(self.before.get("plan", plan.name), undone)


class BilledAccount(msgspec.Struct):
    """What a store has of an account: its plan now, every change of it and the days counted, oldest first."""

    id: int
    name: str
    plan: Plan
    created_at_ms: int
    closed_at_ms: int | None
    changes: list[PlanChange] = []
    counted: list[DailyUsage] = []

    def bill(self, first: int, last: int) -> Iterator[BilledDays]:
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
            yield BilledDays(
                self.id, self.name, _iso_day(day), plan, counts.requests, counts.refused, counts.deprecated
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
            plan = change.undone(plan)
        return [*found, (0, plan)]


def sum_up(days: Iterable[BilledDays]) -> Iterator[BilledDays]:
    """One row for days in a row of the same account and plan."""
    for _, same in groupby(days, lambda day: (day.account_id, day.plan)):
        rows = list(same)
        yield replace(
            rows[0],
            requests=sum(row.requests for row in rows),
            refused=sum(row.refused for row in rows),
            deprecated=sum(row.deprecated for row in rows),
            last=rows[-1].date,
            days=len(rows),
        )
