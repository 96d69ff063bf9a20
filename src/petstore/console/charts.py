"""Charts of stock, sales and the use of an account: SVG, drawn on the server, so that they need no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zoneinfo import ZoneInfo

import msgspec

from petstore.console.categories import CategoryNames
from petstore.core.limits.usage import DailyUsage
from petstore.core.moments import iso_day
from petstore.core.pets import PetStatus
from petstore.core.totals import WEEKS, Sales, Totals
from petstore.core.zones import day_at

# Categories with a bar of their own; the others share one.
_SHOWN = 6
# The least percent that a part with a count gets, so that it is seen.
_LEAST = 0.5
_DELIVERED = "#Orders delivered"
_NONE_DELIVERED = f"No order was delivered in these {WEEKS} weeks."


class Row(msgspec.Struct, frozen=True):
    """A bar and a row of the table.

    `parts` say where each part of the bar begins and how long it is, in percent of the longest bar.
    """

    name: str
    counts: Sequence[int]
    total: int  # the sum of the counts that are parts
    parts: list[tuple[float, float]]


class Chart(msgspec.Struct, frozen=True):
    """`columns` are the headings of the table: of the names, then of the counts. The first counts are
    `parts` of the bars. Without `rows`, `empty` says why. A chart over time has `last`, the name of its last
    bar: its bars stand, the oldest first."""

    title: str
    unit: str
    columns: Sequence[str]
    rows: list[Row]
    empty: str
    parts: Sequence[str] = ()
    last: str = ""


def charts(totals: Totals, names: CategoryNames, zone: ZoneInfo) -> list[Chart]:
    """Stock by category, sales by week, which is of the zone, and by category."""
    return [_stock(totals, names), _by_week(totals.sales, zone), _by_category(totals.sales, names)]


def _stock(totals: Totals, names: CategoryNames) -> Chart:
    """Sold animals are in the table alone: after some years they would be most of each bar."""
    pets = sorted(totals.categories.items(), key=lambda item: item[1][PetStatus.SOLD] - sum(item[1].values()))
    rows = [(_name(id_, names), [counts[status] for status in PetStatus]) for id_, counts in pets[:_SHOWN]]
    rows = _with_others(rows, [totals.pets[status] for status in PetStatus])
    statuses = [status.value for status in PetStatus]
    return Chart(
        "Stock by category",
        "animals now",
        ["Category", *(f"#{status.capitalize()}" for status in statuses)],
        _rows(rows, 2),
        "No animal is in the store.",
        statuses[:2],
    )


def _by_week(sales: Sales, zone: ZoneInfo) -> Chart:
    rows = _rows([(iso_day(day_at(begin, zone)), [count]) for begin, count in sales.weeks.items()])
    columns = ["Week from", _DELIVERED]
    return Chart("Sales by week", "orders delivered", columns, rows, _NONE_DELIVERED, last="this week so far")


def chart_of_use(days: Sequence[DailyUsage]) -> Chart:
    """The requests of an account, from days of which the newest is the first."""
    counts = [(iso_day(each.day), [each.requests, each.refused, each.deprecated]) for each in reversed(days)]
    return Chart(
        f"Use of {len(days)} days",
        "requests",
        ["Day (UTC)", "#Requests", "#Refused", "#Deprecated"],
        _rows(counts, 2),
        f"No request was made in these {len(days)} days (UTC).",
        ["requests", "refused"],
        last="today so far",
    )


def _by_category(sales: Sales, names: CategoryNames) -> Chart:
    rows = [(_name(id_, names), [count]) for id_, count in list(sales.categories.items())[:_SHOWN]]
    rows = _with_others(rows, [sum(sales.weeks.values())])
    unit = f"orders in {WEEKS} weeks"
    return Chart("Sales by category", unit, ["Category", _DELIVERED], _rows(rows), _NONE_DELIVERED)


def _name(category_id: int | None, names: CategoryNames) -> str:
    if category_id is None:
        return "Removed animals"
    label = names.label(category_id)
    return f"Category {label}" if label == str(category_id) else label


def _with_others(rows: list[tuple[str, list[int]]], whole: Sequence[int]) -> list[tuple[str, list[int]]]:
    """The rows and one of what is left of the whole, which may be less: it was counted at another moment."""
    shown = (sum(counts) for counts in zip(*(counts for _, counts in rows), strict=True))
    others = [max(0, count - each) for count, each in zip(whole, shown, strict=False)]
    return [*rows, ("Other categories", others)] if any(others) else rows


def _rows(rows: list[tuple[str, list[int]]], parts: int = 1) -> list[Row]:
    """The rows with bars of their first `parts` counts; none if these are all 0."""
    longest = max((sum(counts[:parts]) for _, counts in rows), default=0)
    if longest == 0:
        return []
    return [Row(name, counts, sum(counts[:parts]), _bar(counts[:parts], longest)) for name, counts in rows]


def _bar(counts: Iterable[int], longest: int) -> list[tuple[float, float]]:
    whole, begin, parts = 0, 0.0, []
    for count in counts:
        whole += count
        end = max(round(whole * 100 / longest, 1), begin + (_LEAST if count else 0))
        length = round(end - begin, 1)
        parts.append((min(begin, 100 - length), length))
        begin = round(end, 1)
    return parts
