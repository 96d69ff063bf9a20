"""Bills of `petstore usage`: a row for each account and day, or sums, as CSV, JSON or a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from petstore.cli.context import Session, read_store
from petstore.cli.output import Columns, echo_err, write_line, write_table
from petstore.cli.records import LIMIT_HEADINGS
from petstore.core.billing import BilledDays
from petstore.core.durations import DAY_MS
from petstore.core.lists.bills import Bill, written_bill
from petstore.core.moments import iso_day

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_TABLE_MAX = 10_000


def write_bill(session: Session, account: str | None, bill: Bill, form: str) -> None:
    """Print the bill of an account by name or id, or of all, as `csv`, `json` or `table`."""
    asked, remark = _within(bill, session.clock.now_ms() // DAY_MS)

    async def write(store: Store) -> None:
        found = None if account is None else await store.accounts.find(account)
        bill = replace(asked, account_id=None if found is None else found.id)
        if remark:
            echo_err(remark)
        if form != "table":
            async for piece in written_bill(bill, store.billing.accounts, form):
                click.echo(piece, nl=False)
            return
        table = _Table(bill.summed)
        async for rows in bill.pages(store.billing.accounts):
            table.add(rows)
        table.show()

    read_store(session, write)


def _within(bill: Bill, today: int) -> tuple[Bill, str]:
    """The bill until today, and a remark when it is not final. Raises UsageError for the future."""
    if bill.first > today:
        raise click.UsageError(f"{iso_day(bill.first)} is in the future: today is {iso_day(today)} (UTC).")
    if bill.last < today:
        return bill, ""
    remark = f"Not final: {iso_day(today)} is not over (UTC), so its counts may grow."
    if bill.last > today:
        remark += f" The days until {iso_day(bill.last)} are missing."
    return replace(bill, last=today), remark


class _Table:
    """The first rows, and the sum of all."""

    def __init__(self, summed: bool) -> None:
        self._columns = _PERIOD if summed else _DAY
        self._shown: list[dict[str, Any]] = []
        self._left_out = self._requests = self._refused = self._deprecated = 0

    def add(self, rows: Iterator[BilledDays]) -> None:
        for row in rows:
            self._requests += row.requests
            self._refused += row.refused
            self._deprecated += row.deprecated
            if len(self._shown) < _TABLE_MAX:
                self._shown.append(row.members())
            else:
                self._left_out += 1

    def show(self) -> None:
        if not self._shown:
            echo_err("No account was open on these days.")
            return
        write_table(self._shown, self._columns)
        write_line(
            f"\nTogether: {self._requests:,} requests, {self._refused:,} refused,"
            f" {self._deprecated:,} deprecated."
        )
        if self._left_out:
            echo_err(f"Rows not shown: {self._left_out:,}. --csv or --json prints all.")


_COUNTS: Columns = {
    "PLAN": "plan",
    **LIMIT_HEADINGS,
    "REQUESTS": "requests",
    "REFUSED": "refused",
    "DEPRECATED": "deprecated",
}
_DAY: Columns = {"ID": "accountId", "ACCOUNT": "account", "DATE": "date", **_COUNTS}
_PERIOD: Columns = {
    "ID": "accountId",
    "ACCOUNT": "account",
    "FROM": "from",
    "TO": "to",
    "DAYS": "days",
    **_COUNTS,
}
