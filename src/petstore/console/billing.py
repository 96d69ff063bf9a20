"""The page of bills: shows the first rows, exports all of them as CSV or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from itertools import islice

from starlette.responses import Response

from petstore.console.downloads import Downloads
from petstore.console.formats import choose
from petstore.console.visit import View, Visit, address
from petstore.core.billing import row_members
from petstore.core.durations import DAY_MS
from petstore.core.errors import Invalid
from petstore.core.lists.bills import Bill, written_bill
from petstore.core.moments import iso_day, read_day, read_month
from petstore.core.people import Role
from petstore.transactions.billing import Billing

_ROWS = 20
_READS_MAX = 20
_DAYS_MAX = 366
_FIELDS = ("month", "first", "last", "sum")
_FORMS = ("csv", "json")


class BillingPages:
    """`/billing`, and the file at `/billing/bill`."""

    def __init__(self, billing: Billing, downloads: Downloads) -> None:
        self._billing = billing
        self._downloads = downloads

    def views(self) -> list[View]:
        return [
            View("GET", "/billing", self.show, Role.OPERATOR),
            View("GET", "/billing/bill", self.export, Role.OPERATOR),
        ]

    async def show(self, visit: Visit) -> Response:
        """The form; if the query has days, also the first rows of their bill."""
        asked = visit.asked(*_FIELDS)
        if not any(asked.values()):
            return self._page(visit, {**asked, "month": _month_before(visit.now_ms // DAY_MS)})
        try:
            bill, is_final = _read_bill(asked, visit.now_ms // DAY_MS)
        except Invalid as error:
            return self._page(visit, asked, 400, {error.field: error.message})
        rows = await self._first_rows(bill)
        return self._page(visit, asked, bill=bill, rows=rows, is_final=is_final)

    async def export(self, visit: Visit) -> Response:
        asked = visit.asked(*_FIELDS)
        form = visit.query.get("form", "")
        try:
            bill, _ = _read_bill(asked, visit.now_ms // DAY_MS)
            if form not in _FORMS:
                raise Invalid("month", choose(_FORMS))
        except Invalid as error:
            return self._page(visit, asked, 400, {error.field: error.message})
        name = (
            f"petstore-{iso_day(bill.first)}-to-{iso_day(bill.last)}{'-sums' if bill.summed else ''}.{form}"
        )
        return self._downloads.file(name, written_bill(bill, self._billing.accounts, form))

    async def _first_rows(self, bill: Bill) -> list[dict[str, str | int]]:
        """The rows of the first accounts. A row of sums over a year reads 366 days."""
        rows: list[dict[str, str | int]] = []
        async with aclosing(bill.pages(self._billing.accounts)) as pages:
            reads = 0
            async for page in pages:
                rows += (row_members(row) for row in islice(page, _ROWS - len(rows)))
                reads += 1
                if len(rows) == _ROWS or reads == _READS_MAX:
                    break
        return rows

    def _page(
        self,
        visit: Visit,
        asked: Mapping[str, str],
        status: int = 200,
        faults: Mapping[str, str] | None = None,
        *,
        bill: Bill | None = None,
        rows: list[dict[str, str | int]] | None = None,
        is_final: bool = True,
    ) -> Response:
        return visit.page(
            "billing.html",
            "Billing",
            status,
            asked=asked,
            faults=faults or {},
            rows=rows,
            summed=bill is not None and bill.summed,
            days=None if bill is None else (iso_day(bill.first), iso_day(bill.last)),
            is_final=is_final,
            files={form: address("billing/bill", {**asked, "form": form}) for form in _FORMS},
        )


def _read_bill(asked: Mapping[str, str], today: int) -> tuple[Bill, bool]:
    """The bill of all accounts, up to today, and whether its last day has ended. Raises Invalid."""
    if asked["month"] and (asked["first"] or asked["last"]):
        raise Invalid("month", "Give either a month, or a first and a last day.")
    if asked["month"]:
        month = read_month(asked["month"])
        if month is None:
            raise Invalid("month", "Write a month such as 2026-10.")
        first, last = month
    else:
        first, last = _read_day("first", asked["first"]), _read_day("last", asked["last"])
    if first > last:
        raise Invalid("last", "The last day is before the first one.")
    if first > today:
        raise Invalid("month" if asked["month"] else "first", "These days are in the future.")
    if last - first >= _DAYS_MAX:
        raise Invalid("last", f"A bill is of {_DAYS_MAX} days at most.")
    return Bill(None, first, min(last, today), asked["sum"] == "on"), last < today


def _read_day(field: str, text: str) -> int:
    day = read_day(text)
    if day is None:
        raise Invalid(field, "Write a day such as 2026-10-01, or give a month.")
    return day


def _month_before(today: int) -> str:
    """The last complete month, such as 2026-10."""
    month = read_month(iso_day(today)[:7])
    assert month is not None
    return iso_day(month[0] - 1)[:7]
