"""Writes bills: a row for each account and day, or sums, as CSV or JSON.

Accounts are read and written in pages, so that memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from itertools import chain
from typing import Protocol

import msgspec

from petstore.core.billing import (
    BilledAccount,
    BilledDay,
    BilledPeriod,
    BillingRepository,
    BillRow,
    row_members,
    sum_up,
)
from petstore.core.lists.spreadsheets import csv_bytes

_PAGE_DAYS = 500  # account-days that are read at once, some milliseconds: SQLite reads on the event loop


class Bill(msgspec.Struct, frozen=True):
    """What is asked for: one account by its id or all (None), and the first and last UTC day."""

    account_id: int | None
    first: int
    last: int
    summed: bool

    @property
    def row(self) -> type[BillRow]:
        return BilledPeriod if self.summed else BilledDay

    def rows(self, accounts: Iterable[BilledAccount]) -> Iterator[BillRow]:
        """By account and day."""
        days = chain.from_iterable(account.bill(self.first, self.last) for account in accounts)
        return sum_up(days) if self.summed else days

    async def pages(self, billing: BillingRepository) -> AsyncGenerator[Iterator[BillRow], None]:
        """The rows of some accounts at a time. Raises StoreUnavailable."""
        if self.account_id is not None:
            after, limit = self.account_id - 1, 1
            yield self.rows(await billing.accounts(self.first, self.last, after=after, limit=limit))
            return
        limit, after = max(1, _PAGE_DAYS // (self.last - self.first + 1)), 0
        while page := await billing.accounts(self.first, self.last, after=after, limit=limit):
            yield self.rows(page)
            after = page[-1].id


class BillWriter(Protocol):
    """Writes a bill by its heading, its pages, then its end."""

    def heading(self) -> bytes: ...

    def page(self, rows: Iterable[BillRow]) -> bytes: ...

    def end(self) -> bytes: ...


class CsvBill:
    """Implements BillWriter."""

    def __init__(self, row: type[BillRow]) -> None:
        self._row = row

    def heading(self) -> bytes:
        return csv_bytes([self._row.columns()])

    def page(self, rows: Iterable[BillRow]) -> bytes:
        return csv_bytes(row.cells() for row in rows)

    def end(self) -> bytes:
        return b""


class JsonBill:
    """Implements BillWriter as one array, a row on each line."""

    def __init__(self, _row: type[BillRow]) -> None:
        self._before = b"[\n"

    def heading(self) -> bytes:
        return b""

    def page(self, rows: Iterable[BillRow]) -> bytes:
        lines = b",\n".join(msgspec.json.encode(row_members(row)) for row in rows)
        if not lines:
            return b""
        before, self._before = self._before, b",\n"
        return before + lines

    def end(self) -> bytes:
        return b"[]\n" if self._before == b"[\n" else b"\n]\n"


BILL_WRITERS: dict[str, type[CsvBill] | type[JsonBill]] = {"csv": CsvBill, "json": JsonBill}


async def written_bill(bill: Bill, billing: BillingRepository, form: str) -> AsyncIterator[bytes]:
    """The bill in pieces, `form` being `csv` or `json`."""
    writer: BillWriter = BILL_WRITERS[form](bill.row)
    yield writer.heading()
    async for rows in bill.pages(billing):
        yield writer.page(rows)
    yield writer.end()
