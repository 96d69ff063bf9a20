"""Writes bills: a row for each account and day, or sums, as CSV or JSON.

Accounts are read and written in pages, so that memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from itertools import chain

import msgspec

from petstore.core.billing import BilledAccount, BilledDays, columns, sum_up
from petstore.core.lists.spreadsheets import csv_bytes

# Reads the accounts of a bill, as Billing.accounts.
Accounts = Callable[[int, int, int, int], Awaitable[list[BilledAccount]]]
_PAGE_DAYS = 500  # account-days that are read at once, some milliseconds: SQLite reads on the event loop


class Bill(msgspec.Struct, frozen=True):
    """What is asked for: one account by its id or all (None), and the first and last UTC day."""

    account_id: int | None
    first: int
    last: int
    summed: bool

    def rows(self, accounts: Iterable[BilledAccount]) -> Iterator[BilledDays]:
        """The rows of a bill, by account and day."""
        days = chain.from_iterable(account.bill(self.first, self.last) for account in accounts)
        return sum_up(days) if self.summed else days

    async def pages(self, read: Accounts) -> AsyncGenerator[Iterator[BilledDays], None]:
        """The rows of some accounts at a time. Raises StoreUnavailable."""
        if self.account_id is not None:
            after, limit = self.account_id - 1, 1
            yield self.rows(await read(self.first, self.last, after, limit))
            return
        limit, after = max(1, _PAGE_DAYS // (self.last - self.first + 1)), 0
        while page := await read(self.first, self.last, after, limit):
            yield self.rows(page)
            after = page[-1].id


async def written_bill(bill: Bill, read: Accounts, form: str) -> AsyncIterator[bytes]:
    """The bill in pieces: `csv`, or `json` as one array with a row on each line."""
    if form == "csv":
        yield csv_bytes([columns(bill.summed)])
        async for rows in bill.pages(read):
            yield csv_bytes(row.cells() for row in rows)
        return
    before = b"[\n"
    async for rows in bill.pages(read):
        if lines := b",\n".join(msgspec.json.encode(row.members()) for row in rows):
            yield before + lines
            before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"
