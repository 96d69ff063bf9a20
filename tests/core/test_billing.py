"""Bills: which days are on them, and with which plan."""

from __future__ import annotations

from typing import Any

from petstore.core.billing import BilledAccount, BilledDays, PlanChange, sum_up
from petstore.core.durations import DAY_MS
from petstore.core.limits.plans import FREE, PRO, Plan
from petstore.core.limits.usage import DailyUsage
from tests.support.cases import every_case
from tests.support.windows import limits_of

FIRST, LAST = 20_000, 20_009  # 2024-10-04 to 2024-10-13
TO_PRO: dict[str, Any] = {"plan": "free", "perMinute": 60, "perDay": 1_000}


def account(**changed: Any) -> BilledAccount:
    """One that is older than the bill, open, on the Pro plan now, and made no requests."""
    of: dict[str, Any] = {"id": 7, "name": "shop", "plan": PRO, "created_at_ms": 0, "closed_at_ms": None}
    return BilledAccount(**of | changed)


def billed(of: BilledAccount) -> list[tuple[int, str]]:
    """(day, counted from the bill's first, and plan) of each row."""
    dates = {f"2024-10-{4 + offset:02}": offset for offset in range(-3, 20)}
    return [(dates[row.date], row.plan.name) for row in of.bill(FIRST, LAST)]


def change(day: float, before: dict[str, Any] = TO_PRO) -> PlanChange:
    """A plan change `day` days after the bill's first day began."""
    return PlanChange(int((FIRST + day) * DAY_MS), before)


class TestPlans:
    """The plan of a day is the one at its end."""

    @every_case(
        ("changes", "days_on_free"),
        [
            ([], 0),  # none in the journal: today's plan all along
            ([change(-0.1)], 0),  # on the day before the bill
            ([change(0)], 0),  # at the first midnight
            ([change(4.0)], 4),  # at midnight: that day ends on the new plan
            ([change(4.99)], 4),  # late: so does that day
            ([change(9.99)], 9),
            ([change(10)], 10),  # at the midnight after the bill
            ([change(30)], 10),  # long after it
        ],
    )
    def test_of_one_change(self, changes: list[PlanChange], days_on_free: int) -> None:
        """Undone for the days before it, whether it is before, within or after the bill."""
        expected = [(day, "free" if day < days_on_free else "pro") for day in range(10)]
        assert billed(account(changes=changes)) == expected

    def test_the_last_plan_of_a_day_counts(self) -> None:
        """A day is billed by one plan, however often it changed."""
        changes = [change(4.1, {"plan": "business"}), change(4.2, TO_PRO), change(4.3)]
        plans = [plan for _, plan in billed(account(changes=changes))]
        assert plans == ["business"] * 4 + ["pro"] * 6

    def test_only_the_numbers_changed(self) -> None:
        """The journal has the members that changed; the others are as they are later."""
        changes = [change(3, {"perMinute": 5}), change(6, {"perDay": 70})]
        rows = account(plan=Plan("enterprise", limits_of(9, 90)), changes=changes).bill(FIRST, LAST)
        limits = [row.plan for row in rows]
        expected = [(5, 70)] * 3 + [(9, 70)] * 3 + [(9, 90)] * 4
        assert limits == [Plan("enterprise", limits_of(*numbers)) for numbers in expected]

    def test_a_clock_that_was_set_back(self) -> None:
        """The order of the changes is the journal's; a time after that of a later change is not believed."""
        changes = [change(8, {"plan": "business"}), change(4)]
        assert [plan for _, plan in billed(account(changes=changes))] == ["business"] * 4 + ["pro"] * 6


class TestDays:
    """A bill's days: from the one on which the account was added to the one on which it was closed."""

    @every_case(
        ("created", "closed", "expected"),
        [
            (-5, None, range(10)),
            (0, None, range(10)),
            (3.5, None, range(3, 10)),
            (10, None, range(0)),
            (-5, 3.5, range(4)),
            (-5, 0, range(1)),
            (-5, -0.1, range(0)),
            (-5, 10, range(10)),
            (2, 2.5, range(2, 3)),
        ],
    )
    def test_of_an_account(self, created: float, closed: float | None, expected: range) -> None:
        """Both days are on the bill; days without requests too."""
        of = account(
            created_at_ms=int((FIRST + created) * DAY_MS),
            closed_at_ms=None if closed is None else int((FIRST + closed) * DAY_MS),
        )
        assert [day for day, _ in billed(of)] == list(expected)

    def test_requests_are_never_left_out(self) -> None:
        """A bill has all requests, those dated before the account's addition or after its closing too."""
        of = account(
            created_at_ms=(FIRST + 4) * DAY_MS,
            closed_at_ms=(FIRST + 5) * DAY_MS,
            counted=[DailyUsage(FIRST + 3, 1), DailyUsage(FIRST + 7, 2, 3, 4)],
        )
        rows = list(of.bill(FIRST, LAST))
        assert [row.requests for row in rows] == [1, 0, 0, 0, 2]
        assert rows[-1] == BilledDays(7, "shop", "2024-10-11", PRO, 2, 3, 4)


def test_sums_have_a_row_for_days_in_a_row_on_a_plan() -> None:
    """One row for days in a row on a plan; a plan that comes back begins another, and so does an account."""
    counted = [DailyUsage(day, 1, 10, 100) for day in range(FIRST, LAST + 1)]
    changes = [change(2, {"plan": "pro"}), change(5, {"plan": "free"})]
    one, other = account(changes=changes, counted=counted), account(id=8, name="zoo", plan=FREE)
    rows = sum_up([*one.bill(FIRST, LAST), *other.bill(FIRST, LAST)])
    columns = ("accountId", "from", "to", "days", "plan", "requests", "refused", "deprecated")
    assert [tuple(row.members()[column] for column in columns) for row in rows] == [
        (7, "2024-10-04", "2024-10-05", 2, "pro", 2, 20, 200),
        (7, "2024-10-06", "2024-10-08", 3, "free", 3, 30, 300),
        (7, "2024-10-09", "2024-10-13", 5, "pro", 5, 50, 500),
        (8, "2024-10-04", "2024-10-13", 10, "free", 0, 0, 0),
    ]
