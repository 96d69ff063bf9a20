"""The way of a stock list into a store: check each row, stage the good ones, plan, store all or nothing.

Nothing here knows where the list comes from: a file, or an upload in the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from petstore.core.lists.stock_list import StockList
from petstore.core.printable import printable
from petstore.core.stock import StockImport, StockPlan, StockRow
from petstore.core.uploads import UploadFault, chunks, put_chunk

FAULTS_SHOWN = 100
_SHOWN_CHARACTERS = 200
_ROWS_AT_A_TIME = 10_000
_PLANS_MAX = 4


class Spool:
    """Rows in a temporary file, so that a list of any length is checked whole before a store sees it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[StockRow]).decode

    def add(self, rows: list[StockRow]) -> None:
        put_chunk(self._file, self._encode(rows))

    def chunks(self) -> Iterator[list[StockRow]]:
        """The lists as they were added."""
        return map(self._decode, chunks(self._file))


class BadRows:
    """The bad rows of a list: counted, the first ones kept, all of them in `file` unless it is None."""

    def __init__(self, listed: StockList, file: BinaryIO | None) -> None:
        self._listed = listed
        self._file = file
        self._first: list[UploadFault] = []
        self._of_file = (0, 0, 0)
        self.count = 0
        if file is not None:
            file.write(listed.heading())

    def add(self, line: int, fault: str, raw: bytes) -> None:
        """A row that breaks a rule of the file."""
        self.count += 1
        if len(self._first) < FAULTS_SHOWN:
            row = printable(raw.decode(errors="replace").strip())
            self._first.append(UploadFault(line, fault, row[:_SHOWN_CHARACTERS]))
        if self._file is not None:
            self._file.write(self._listed.reject(line, fault, raw))

    def add_row(self, row: StockRow, fault: str) -> None:
        """A row that the store can't carry out."""
        self.add(row.line, fault, self._listed.raw(row))

    def end_of_file(self) -> None:
        """What follows are the rows that a plan of the store rejects."""
        self._of_file = self.count, len(self._first), self._file.tell() if self._file is not None else 0

    def plan_again(self) -> None:
        """Forget the rows of the last plan."""
        self.count, first, size = self._of_file
        del self._first[first:]
        if self._file is not None:
            self._file.seek(size)
            self._file.truncate()

    def first(self) -> list[UploadFault]:
        """The first FAULTS_SHOWN bad rows of the file and of the plan, by their lines."""
        return sorted(self._first)


def check_rows(listed: StockList, good: Spool, bad: BadRows, progress: Callable[[int], None]) -> int:
    """Read the whole list; the number of its rows. `progress` gets the number of each batch of good ones.

    Raises OperatorError for a file that can't be read to its end.
    """
    read, rows = 0, list[StockRow]()
    for record in listed.records():
        read += 1
        if record.row is None:
            bad.add(record.line, record.fault, record.raw)
        else:
            rows.append(record.row)
            if len(rows) == _ROWS_AT_A_TIME:
                good.add(rows)
                progress(len(rows))
                rows = []
    good.add(rows)
    progress(len(rows))
    bad.end_of_file()
    return read


async def stage_rows(load: StockImport, good: Spool, progress: Callable[[int], None]) -> None:
    """Hand the good rows to the store, which changes nothing yet."""
    for rows in good.chunks():
        await load.stage(rows)
        progress(len(rows))


async def plan_and_store(
    load: StockImport,
    bad: BadRows,
    *,
    wants: Callable[[StockPlan], bool],
    before_store: Callable[[], None] = lambda: None,
) -> tuple[StockPlan, float | None]:
    """The last plan, and for how many seconds others had to wait while it was stored; None: it was not.

    A plan that the caller `wants` is stored, after `before_store`; its bad rows are in `bad`. When another
    program has changed an animal of it meanwhile, a new plan is made, the fourth one while nobody else
    writes.
    """
    for attempt in range(1, _PLANS_MAX + 1):
        bad.plan_again()
        plan = await load.plan(locked=attempt == _PLANS_MAX)
        async for page in load.rejected():
            for row, fault in page:
                bad.add_row(row, fault)
        if not wants(plan):
            return plan, None
        before_store()
        locked_seconds = await load.store()
        if locked_seconds is not None:
            return plan, locked_seconds
    raise AssertionError("somebody else has changed what is locked")
