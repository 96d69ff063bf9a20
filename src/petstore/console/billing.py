"""The page of bills: shows the first rows, and `/billing/bill` exports all of them as CSV or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from itertools import islice

from starlette.responses import Response

from petstore.console.accounts import account_of
from petstore.console.formats import choose
from petstore.console.visit import View, Visit, address, asks_again
from petstore.core.billing import BilledDays
from petstore.core.durations import DAY_MS
from petstore.core.errors import Invalid
from petstore.core.lists.bills import Bill, written_bill
from petstore.core.moments import iso_day, read_day, read_month
from petstore.core.people import Role

_ROWS = 20
_READS_MAX = 20
_DAYS_MAX = 366
_FIELDS = ("month", "first", "last", "sum")
_FORMS = ("csv", "json")


async def show(visit: Visit) -> Response:
    """The form; if the query has days, also the first rows of their bill."""
    asked, today = visit.asked(*_FIELDS), visit.now_ms // DAY_MS
    bill, is_final, rows = None, True, None
    if visit.error is None and not any(asked.values()):
        asked["month"] = _month_before(today)
    elif visit.error is None:
        try:
            bill, is_final = _read_bill(asked, today)
            rows = await _first_rows(visit, bill)
        except Invalid as error:
            visit.refuse(error)
    return visit.page(
        "billing.html",
        "Billing",
        asked=asked,
        rows=rows,
        summed=bill is not None and bill.summed,
        days=None if bill is None else (iso_day(bill.first), iso_day(bill.last)),
        is_final=is_final,
        files={form: address("billing/bill", {**asked, "form": form}) for form in _FORMS},
    )


@asks_again(show, Invalid)
async def export(visit: Visit) -> Response:
    form = visit.query.get("form", "")
    bill, _ = _read_bill(visit.asked(*_FIELDS), visit.now_ms // DAY_MS)
    if form not in _FORMS:
        raise Invalid("month", choose(_FORMS))
    sums = "-sums" if bill.summed else ""
    name = f"petstore-{iso_day(bill.first)}-to-{iso_day(bill.last)}{sums}.{form}"
    return visit.download(name, written_bill(bill, visit.store.billing.accounts, form))


async def show_account(visit: Visit) -> Response:
    """The bill of one account and month, for paper: without a month, of the last one. Raises NotFound."""
    account = await account_of(visit)
    today = visit.now_ms // DAY_MS
    month = visit.asked("month")["month"] or _month_before(today)
    rows, days, is_final = list[BilledDays](), None, True
    try:
        bill, is_final = _read_bill({"month": month, "first": "", "last": "", "sum": ""}, today)
        days = iso_day(bill.first), iso_day(bill.last)
        read = await visit.store.billing.accounts(bill.first, bill.last, account.id - 1, 1)
        rows = [day for each in read for day in each.bill(bill.first, bill.last)]
    except Invalid as error:
        visit.refuse(error)
    return visit.page(
        "billing_account.html",
        f"Bill of {account.name}",
        account=account,
        customer=await visit.store.customers.of(account.id),
        month=month,
        days=days,
        rows=rows,
        sums=[sum(getattr(row, name) for row in rows) for name in ("requests", "refused", "deprecated")],
        is_final=is_final,
    )


async def _first_rows(visit: Visit, bill: Bill) -> list[dict[str, str | int]]:
    """The rows of the first accounts. A row of sums over a year reads 366 days."""
    rows: list[dict[str, str | int]] = []
    async with aclosing(bill.pages(visit.store.billing.accounts)) as pages:
        reads = 0
        async for page in pages:
            rows += (row.members() for row in islice(page, _ROWS - len(rows)))
            reads += 1
            if len(rows) == _ROWS or reads == _READS_MAX:
                break
    return rows


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


VIEWS = [
    View("GET", "/billing", show, Role.OPERATOR),
    View("GET", "/accounts/{account_id}/bill", show_account, Role.OPERATOR),
    View("GET", "/billing/bill", export, Role.OPERATOR),
]
