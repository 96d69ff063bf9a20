"""Stock lists that are tables: CSV and Excel, with headings in one of the first rows.

The first bytes of a file say what it is, never its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise, zip_longest
from typing import Any, BinaryIO

from petstore.core.errors import InvalidBody, OperatorError
from petstore.core.lists.cells import UNSURE, Cells
from petstore.core.lists.columns import COLUMNS_CHOSEN_MAX, FAULTS, Columns, ColumnsUnclear, quoted
from petstore.core.lists.sheets import SheetTable
from petstore.core.lists.spreadsheets import csv_bytes
from petstore.core.lists.stock_list import ListContext, Record, members_of, row_of
from petstore.core.lists.tables import HEADING_ROWS, CountKnown, CsvTable, Table
from petstore.core.pets import FIELDS
from petstore.core.printable import printable
from petstore.core.stock import StockRow, row_schema
from petstore.core.uploads import Reading
from petstore.core.values import NAME

_SHOWN_ROWS = 4
_SHOWN_CHARACTERS = 40
# What people send by mistake, by its first bytes.
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "This is an old Excel file (.xls), or one with a password. Open it in Excel and save"
    " it as .xlsx without a password, or as CSV.",
    b"%PDF": "This is a PDF, which has no rows. Ask the supplier for the list as CSV or Excel.",
    b"\x1f\x8b": "This file is compressed. Unpack it, and send the list that is in it.",
    b"{\\rtf": "This is a text document. Save the table in it as CSV.",
    b"<": "This is a web page or XML. Open it in a spreadsheet program and save it as CSV.",
}


class TableList:
    """Implements StockList for CSV and Excel, whose first rows have the names of the columns."""

    def __init__(self, file: BinaryIO, key_name: str | None, known: ListContext) -> None:
        self._cells = Cells(known.categories)
        columns_of = partial(Columns, key_name=key_name, remembered=known.columns)
        self._table = _open_table(file, lambda row: columns_of(row).count_known)
        rows = self._table.rows()
        first = list(islice(rows, HEADING_ROWS))
        if not first:
            raise OperatorError(
                "The list is empty; its first line has to name its columns. Nothing was stored."
            )
        used, self._columns = _heading([columns_of(cells) for _, cells, _ in first], columns_of)
        self._first = [cells for _, cells, _ in first[used:]]
        self.key_name = self._columns.key_name
        self._schema = row_schema(self.key_name)
        self._heading_line = first[used - 1][0]
        self._rows = chain(first[used:], rows)
        indexes = self._columns.indexes
        self._fields = [(indexes.get(field.member), field, self._cells.certain(field)) for field in FIELDS]
        self._key = self._columns.key_index

    def records(self) -> Iterator[Record]:
        width = len(self._columns.headings)
        for line, cells, bad in self._rows:
            if len(cells) != width:
                cells = self._table.fitted(cells, width)
            if len(cells) != width:
                fault = f"Expected {width} cells as in the first line, got {len(cells)}."
                yield Record(line, None, fault, self._text(cells))
            elif bad and (faults := [bad[index] for index in self._columns.used if index in bad]):
                yield Record(line, None, " ".join(faults), self._text(cells))
            else:
                yield self._record(line, cells)

    def _record(self, line: int, cells: list[str]) -> Record:
        values = [read(cells[index]) if index is not None else None for index, _, read in self._fields]
        key = cells[self._key] if self._key is not None else None
        if UNSURE not in values and (key is None or NAME.fullmatch(key)):
            return Record(line, StockRow(line, key, tuple(values)))
        try:
            row = row_of(line, self._schema.read_members(self._members(cells)))
        except InvalidBody as error:
            faults = " ".join(
                self._cells.words(field, cells[index])
                for value, (index, field, _) in zip(values, self._fields, strict=True)
                if value is UNSURE and index is not None
            ).strip()
            fault = f"{faults} ({error.message})" if faults else error.message
            return Record(line, None, fault, self._text(cells))
        return Record(line, row)

    def _members(self, cells: list[str]) -> list[tuple[str, Any]]:
        """What the schema reads of a row. An empty cell is an absent member, unless a text is required."""
        members: list[tuple[str, Any]] = [
            (field.member, self._cells.member(field, cells[index]))
            for index, field, _ in self._fields
            if index is not None and (cells[index].strip() or (field.kind is str and field.is_required))
        ]
        if self._key is not None and self.key_name is not None and cells[self._key]:
            members.append((self.key_name, cells[self._key]))
        return members

    def reading(self) -> Reading:
        notes = self._table.notes()
        if self._heading_line > 1:
            notes.append(f"The names of the columns stand in line {self._heading_line}.")
        if left_out := self._columns.left_out:
            notes.append(f"Left out: {', '.join(map(quoted, left_out))}.")
        return _reading(notes, self._columns, self._first)

    def meaning(self) -> str:
        chosen = "".join(self._columns.meanings()) if self._columns.chosen is not None else ""
        return chosen + "".join(f"{name}={number}\n" for name, number in sorted(self._cells.used.items()))

    def heading(self) -> bytes:
        return csv_bytes([[FAULTS, *self._columns.headings[self._columns.skipped :]]])

    def reject(self, line: int, fault: str, raw: bytes) -> bytes:
        return csv_bytes([[f"line {line}: {fault}"]]).removesuffix(b"\r\n") + b"," + raw

    def _text(self, cells: list[str]) -> bytes:
        """A row without the column of faults."""
        return csv_bytes([cells[self._columns.skipped :]])

    def raw(self, row: StockRow) -> bytes:
        cells = [""] * len(self._columns.headings)
        for member, value in members_of(row, None).items():
            if member in self._columns.indexes:
                cells[self._columns.indexes[member]] = str(value)
        if self._key is not None:
            cells[self._key] = row.source_key or ""
        return self._text(cells)


def _open_table(file: BinaryIO, known: CountKnown) -> Table:
    """The table in a file that can be read again from its beginning. Raises OperatorError."""
    begin = file.read(8)
    file.seek(0)
    if begin.startswith(b"PK\x03\x04"):
        return SheetTable(file)
    for mark, advice in _OTHERS.items():
        if begin.startswith(mark):
            raise OperatorError(f"{advice} Nothing was stored.")
    return CsvTable(file, known)


def _heading(rows: Sequence[Columns], columns_of: Callable[[Sequence[str]], Columns]) -> tuple[int, Columns]:
    """The first row whose columns are clear, and how many rows there are with it: titles may stand before.

    A heading of two rows, as merged cells make it, counts where it names more. Raises ColumnsUnclear.
    """
    for count, (above, below) in enumerate(pairwise(rows), 2):
        both = columns_of(_completed(below.headings, above.headings))
        if both.are_clear and both.count_known > max(above.count_known, below.count_known):
            return count, both
    for count, columns in enumerate(rows, 1):
        if columns.are_clear:
            return count, columns
    index, best = max(enumerate(rows), key=_likely)
    following = [columns.headings for columns in rows[index + 1 :]]
    raise ColumnsUnclear(best.fault(), _reading([], best, following))


def _completed(cells: list[str], others: list[str]) -> list[str]:
    return [cell or other for cell, other in zip_longest(cells, others, fillvalue="")]


def _likely(numbered: tuple[int, Columns]) -> tuple[int, int, int]:
    """How likely a row has the headings: it names something that is known, fills cells, and comes early."""
    index, columns = numbered
    return columns.count_known, sum(map(bool, columns.headings)), -index


def _reading(notes: list[str], columns: Columns, rows: list[list[str]]) -> Reading:
    """What was read, with the headings and the first rows, bounded; without them if columns are too many."""
    if len(columns.names) > COLUMNS_CHOSEN_MAX:
        return Reading(notes)
    shown = [
        [printable(cell[:_SHOWN_CHARACTERS]) for cell in cells[columns.skipped :][:COLUMNS_CHOSEN_MAX]]
        for cells in [columns.headings, *rows[:_SHOWN_ROWS]]
    ]
    return Reading(notes, columns.names, shown, columns.meanings())
