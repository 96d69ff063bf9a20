"""Bills: for each account and UTC day the plan that applied and the requests made.

The journal has the changes of plans, so the plan of a past day is today's with the later changes undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

import msgspec

from petstore.core.durations import DAY_MS
from petstore.core.limits.plans import WINDOWS, Plan, limit_members
from petstore.core.limits.usage import DailyUsage
from petstore.core.moments import iso_day

_iso_day = lru_cache(maxsize=4_096)(iso_day)


class BilledDay(msgspec.Struct, frozen=True, gc=False):
    """One account on one UTC day. The plan is that at the day's end; requests are the admitted ones."""

    account_id: int
    account: str  # its name today
    date: str
    plan: Plan
    requests: int
    refused: int
    deprecated: int  # of both

    @staticmethod
    def columns() -> tuple[str, ...]:
        return ("accountId", "account", "date", *_COLUMNS)

    def cells(self) -> tuple[str | int, ...]:
        """As CSV and JSON have them under `columns`."""
        return (self.account_id, self.account, self.date, *_cells(self))


class BilledPeriod(msgspec.Struct, frozen=True, gc=False):
    """The sum of an account's days in a row on one plan."""

    account_id: int
    account: str
    first: str
    last: str
    days: int
    plan: Plan
    requests: int
    refused: int
    deprecated: int

    @staticmethod
    def columns() -> tuple[str, ...]:
        return ("accountId", "account", "from", "to", "days", *_COLUMNS)

    def cells(self) -> tuple[str | int, ...]:
        return (self.account_id, self.account, self.first, self.last, self.days, *_cells(self))


BillRow = BilledDay | BilledPeriod
_COLUMNS = ("plan", *(window.limit_member for window in WINDOWS), "requests", "refused", "deprecated")


def _cells(row: BillRow) -> tuple[str | int, ...]:
    return (row.plan.name, *row.plan.limits, row.requests, row.refused, row.deprecated)


def row_members(row: BillRow) -> dict[str, str | int]:
    """The row as JSON has it."""
    return dict(zip(row.columns(), row.cells(), strict=True))


class PlanChange(msgspec.Struct, frozen=True):
    """A change of plan: the members of the earlier plan that were others, by their names in the API."""

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


def sum_up(days: Iterable[BilledDay]) -> Iterator[BilledPeriod]:
    """One row for days in a row of the same account and plan."""
    for _, same in groupby(days, lambda day: (day.account_id, day.plan)):
        rows = list(same)
        yield BilledPeriod(
            rows[0].account_id,
            rows[0].account,
            rows[0].date,
            rows[-1].date,
            len(rows),
            rows[0].plan,
            sum(row.requests for row in rows),
            sum(row.refused for row in rows),
            sum(row.deprecated for row in rows),
        )
