"""Bills of `petstore usage`: a row for each account and day, or sums, as CSV, JSON or a table.

Accounts are read and written in pages, so that memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import astuple, fields

from petstore.cli.context import Session, with_store
from petstore.cli.output import Columns, echo_err, write_line, write_table
from petstore.cli.spreadsheets import csv_bytes
from petstore.core.billing import BilledAccount, BilledDay, BilledPeriod, sum_up
from petstore.core.durations import DAY_MS
from petstore.core.moments import iso_day

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_PAGE_DAYS = 20_000  # account-days that are read at once
_TABLE_MAX = 10_000

Row = BilledDay | BilledPeriod


@dataclass(frozen=True)
class Bill:
    """What is asked for: one account or all (None), from one UTC day to another, both included."""

    account: str | None
    first: int
    last: int
    summed: bool

    def within(self, today: int) -> Bill:
        """The same until today, with a warning when days are missing. Raises UsageError for the future."""
        if self.first > today:
            raise click.UsageError(
                f"{iso_day(self.first)} is in the future: today is {iso_day(today)} (UTC)."
            )
        if self.last < today:
            return self
        echo_err(
            f"Not final: {iso_day(today)} is not over (UTC), and its counts are of now."
            + (f" The days until {iso_day(self.last)} are missing." if self.last > today else "")
        )
        return Bill(self.account, self.first, today, self.summed)

    def rows(self, accounts: Iterable[BilledAccount]) -> Iterator[Row]:
        """By account and day."""
        days = chain.from_iterable(account.bill(self.first, self.last) for account in accounts)
        return sum_up(days) if self.summed else days


def write_bill(session: Session, bill: Bill, form: str) -> None:
    """Print the bill as `csv`, `json` or `table`."""
    bill = bill.within(session.clock.now_ms() // DAY_MS)
    output = _FORMS[form](BilledPeriod if bill.summed else BilledDay)

    async def write(store: Store) -> None:
        async for page in _pages(store, bill):
            output.write(bill.rows(page))
        output.end()

    with_store(session, write)


async def _pages(store: Store, bill: Bill) -> AsyncIterator[list[BilledAccount]]:
    first, last = bill.first, bill.last
    if bill.account is not None:
        found = await store.accounts.find(bill.account)
        yield await store.billing.accounts(first, last, after=found.id - 1, limit=1)
        return
    limit, after = max(1, _PAGE_DAYS // (last - first + 1)), 0
    while page := await store.billing.accounts(first, last, after=after, limit=limit):
        yield page
        after = page[-1].id


class _Csv:
    def __init__(self, row: type[Row]) -> None:
        _write_bytes(csv_bytes([[field.encode_name for field in fields(row)]]))

    def write(self, rows: Iterator[Row]) -> None:
        _write_bytes(csv_bytes(map(astuple, rows)))

    def end(self) -> None:
        pass


class _Json:
    """One array, a row on each line."""

    def __init__(self, _row: type[Row]) -> None:
        self._before = b"[\n"

    def write(self, rows: Iterator[Row]) -> None:
        lines = b",\n".join(map(msgspec.json.Encoder().encode, rows))
        if lines:
            _write_bytes(self._before + lines)
            self._before = b",\n"

    def end(self) -> None:
        _write_bytes(b"[]\n" if self._before == b"[\n" else b"\n]\n")


class _Table:
    """The first rows, and the sum of all."""

    def __init__(self, row: type[Row]) -> None:
        self._columns = _PERIOD if row is BilledPeriod else _DAY
        self._shown: list[dict[str, Any]] = []
        self._left_out = self._requests = self._refused = self._deprecated = 0

    def write(self, rows: Iterator[Row]) -> None:
        for row in rows:
            self._requests += row.requests
            self._refused += row.refused
            self._deprecated += row.deprecated
            if len(self._shown) < _TABLE_MAX:
                self._shown.append(msgspec.to_builtins(row))
            else:
                self._left_out += 1

    def end(self) -> None:
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


_FORMS: dict[str, type[_Csv] | type[_Json] | type[_Table]] = {"csv": _Csv, "json": _Json, "table": _Table}
_COUNTS: Columns = {
    "PLAN": "plan",
    "PER MINUTE": "perMinute",
    "PER DAY": "perDay",
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


def _write_bytes(text: bytes) -> None:
    click.echo(text, nl=False)
