"""Reads stock lists: CSV with a header, or a JSON object a line; each row with its line and its faults.

The rows that can't be imported go to a file of the same format, to be corrected and imported.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from petstore.core.errors import Invalid, InvalidBody, InvalidJson, OperatorError
from petstore.core.fields import Field, Value
from petstore.core.lists.lines import LINE_BYTES_MAX, Lines, without_mark
from petstore.core.lists.spreadsheets import csv_bytes, read_cell
from petstore.core.members import read_integer
from petstore.core.pets import FIELDS, MEMBERS
from petstore.core.printable import printable
from petstore.core.stock import StockRow, row_schema
from petstore.core.values import NAME

FAULTS = "faults"  # the column that the file of rejects adds, and that the next import skips
_SURELY_INT64 = re.compile("0|-?[1-9][0-9]{0,17}", re.ASCII)
_INTEGER = re.compile("-?(0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_SHOWN_MAX = 40
_UNSURE = "\n"  # a line end is in no valid text
_REQUIRED = [field.member for field in FIELDS if field.is_required]
_OPTIONAL = [field.member for field in FIELDS if not field.is_required]


class Record(NamedTuple):
    """A row of a file: `row` when it keeps every rule, else its `fault`; and how it stands there."""

    line: int
    row: StockRow | None
    fault: str
    raw: Sequence[str] | bytes


class StockList(Protocol):
    """An open stock list. Raises OperatorError for a file that can't be read to its end."""

    def records(self) -> Iterator[Record]:
        """Every row, in the order of the file."""
        ...

    def reject(self, line: int, fault: str, raw: Sequence[str] | bytes) -> bytes:
        """A bad row for the file of rejected rows."""
        ...

    def text(self, raw: Sequence[str] | bytes) -> bytes:
        """How a row stands in a file, with its line end."""
        ...

    def raw(self, row: StockRow) -> Sequence[str] | bytes:
        """How a row stands that kept every rule of the file."""
        ...

    def heading(self) -> bytes:
        """The beginning of the file of rejected rows."""
        ...


class CsvList:
    """Implements StockList for CSV (RFC 4180) with a header."""

    def __init__(self, file: BinaryIO, key_name: str | None) -> None:
        self._lines = Lines(file)
        self._reader = csv.reader(self._lines, strict=True)
        self._schema = row_schema(key_name)
        self._key_name = key_name
        header = self._next_cells()
        while header == []:
            header = self._next_cells()
        if header is None:
            raise OperatorError(f"The list is empty; its first line has to name {_columns(key_name)}.")
        self._skipped = int(header[0] == FAULTS)
        self._columns = header[self._skipped :]
        _check_header(self._columns, key_name)
        at = {column: index for index, column in enumerate(self._columns, self._skipped)}
        self._at = [(at.get(field.member), field, _certain(field)) for field in FIELDS]
        self._key = None if key_name is None else at[key_name]

    def records(self) -> Iterator[Record]:
        while True:
            line = self._reader.line_num + 1
            cells = self._next_cells()
            if cells is None:
                return
            if cells:  # an empty line is no row
                yield self._record(line, cells)

    def _next_cells(self) -> list[str] | None:
        """The texts of the next row, or None at the end."""
        self._lines.begin_row()
        try:
            cells = next(self._reader, None)
        except csv.Error as error:
            reason, _, _ = str(error).partition(" - ")  # advice for programmers follows
            raise OperatorError(
                f"Line {self._reader.line_num} is not CSV: {reason}. Nothing was stored."
            ) from None
        if cells is not None and any(cell[:1] == "'" for cell in cells):
            return [read_cell(cell) for cell in cells]
        return cells

    def _record(self, line: int, cells: list[str]) -> Record:
        expected = len(self._columns) + self._skipped
        if len(cells) != expected:
            fault = f"Expected {expected} cells as in the first line, got {len(cells)}."
            return Record(line, None, fault, cells[self._skipped :])
        values = [read(cells[at]) if at is not None else None for at, _, read in self._at]
        key = cells[self._key] if self._key is not None else None
        if _UNSURE not in values and (key is None or NAME.fullmatch(key)):
            return Record(line, StockRow(line, key, tuple(values)), "", cells)
        try:
            row = _row(line, self._schema.read_members(self._members(cells)))
        except InvalidBody as error:
            return Record(line, None, error.message, cells[self._skipped :])
        return Record(line, row, "", cells)

    def _members(self, cells: list[str]) -> list[tuple[str, Any]]:
        """What the schema reads of a row. An empty cell is an absent member, unless a text is required."""
        members = [
            (field.member, _number(cells[at]) if field.kind is int else cells[at])
            for at, field, _ in self._at
            if at is not None and (cells[at] or (field.kind is str and field.is_required))
        ]
        if self._key is not None and self._key_name is not None and cells[self._key]:
            members.append((self._key_name, cells[self._key]))
        return members

    def heading(self) -> bytes:
        return csv_bytes([[FAULTS, *self._columns]])

    def reject(self, line: int, fault: str, raw: Sequence[str] | bytes) -> bytes:
        assert not isinstance(raw, bytes)
        return csv_bytes([[f"line {line}: {fault}", *raw]])

    def text(self, raw: Sequence[str] | bytes) -> bytes:
        assert not isinstance(raw, bytes)
        return csv_bytes([raw])

    def raw(self, row: StockRow) -> Sequence[str]:
        members = _members(row, self._key_name)
        return [str(members.get(column, "")) for column in self._columns]


class JsonList:
    """Implements StockList for a JSON object a line. Empty lines and those that begin with # are no rows."""

    def __init__(self, file: BinaryIO, key_name: str | None) -> None:
        self._file = file
        self._key_name = key_name
        self._schema = row_schema(key_name)

    def records(self) -> Iterator[Record]:
        number = 0
        while line := self._file.readline(LINE_BYTES_MAX + 1):
            number += 1
            raw = (without_mark(line) if number == 1 else line).strip()
            if len(line) > LINE_BYTES_MAX:
                while line and not line.endswith(b"\n"):
                    line = self._file.readline(LINE_BYTES_MAX)
                fault = f"The line is longer than {LINE_BYTES_MAX:,} bytes."
                yield Record(number, None, fault, b"# The line is left out here.")
            elif raw and not raw.startswith(b"#"):
                yield self._record(number, raw)
        if number == 0:
            raise OperatorError("The list is empty; it has to have a JSON object in each line.")

    def _record(self, line: int, raw: bytes) -> Record:
        try:
            return Record(line, _row(line, self._schema.read(raw)), "", raw)
        except (InvalidBody, InvalidJson) as error:
            return Record(line, None, error.message.replace("The body", "The line"), raw)

    def heading(self) -> bytes:
        return b""

    def reject(self, line: int, fault: str, raw: Sequence[str] | bytes) -> bytes:
        return f"# line {line}: {printable(fault)}\n".encode() + self.text(raw)

    def text(self, raw: Sequence[str] | bytes) -> bytes:
        return bytes(raw) + b"\n"  # type: ignore[arg-type]

    def raw(self, row: StockRow) -> bytes:
        return msgspec.json.encode(_members(row, self._key_name))


SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FORMATS: dict[str, type[CsvList] | type[JsonList]] = {"csv": CsvList, "jsonl": JsonList}


def check_key_column(name: str) -> None:
    """Raise Invalid unless a list can have this name as the column of its source keys."""
    if name in (*MEMBERS, FAULTS) or not name:
        raise Invalid("key_name", f"{name!r} can't be the column of the source keys.")
    if not name.isprintable() or '"' in name or "\\" in name:
        raise Invalid(
            "key_name",
            f"{name!r} can't be the column of the source keys: use printable characters but \" and \\.",
        )


def _row(line: int, read: Any) -> StockRow:
    """A row of what the schema has read."""
    values = [getattr(read, field.name) for field in FIELDS]
    return StockRow(line, getattr(read, "source_key", None), tuple(map(_plain, values)))


def _plain(value: Any) -> Value:
    if isinstance(value, StrEnum):
        return value.value
    return None if value is msgspec.UNSET else value


def _members(row: StockRow, key_name: str | None) -> dict[str, object]:
    named = zip(MEMBERS, row.values, strict=True)
    members: dict[str, object] = {member: value for member, value in named if value is not None}
    if key_name is not None:
        members[key_name] = row.source_key
    return members


def _certain(field: Field) -> Callable[[str], Value]:
    """Reads a cell of a field: its value where that is certain, None for an absent one, else _UNSURE."""
    convert: Callable[[str], Value] = int if field.kind is int else str
    pattern = _SURELY_INT64
    if field.is_choice:
        pattern = re.compile("|".join(field.kind))
    elif field.text is not None:
        pattern = field.text.pattern

    def read(cell: str) -> Value:
        return convert(cell) if pattern.fullmatch(cell) else _UNSURE

    return read if field.is_required else lambda cell: read(cell) if cell else None


def _number(cell: str) -> object:
    """The value of a cell as JSON would have it: an integer, another number, or else a text."""
    if _INTEGER.fullmatch(cell):
        return read_integer(cell)
    return 0.5 if _NUMBER.fullmatch(cell) else cell


def _check_header(columns: list[str], key_name: str | None) -> None:
    """Raise OperatorError unless the columns are known, each there once, and all that are needed."""
    known = {*MEMBERS} | ({key_name} if key_name is not None else set())
    faults = [f"{_quoted(column)}: a column without a meaning" for column in columns if column not in known]
    faults += [f"{column}: more than one column" for column in known if columns.count(column) > 1]
    needed = [key_name, *_REQUIRED] if key_name is not None else _REQUIRED
    faults += [f"{column}: missing" for column in needed if column not in columns]
    if not faults:
        return
    one_column = ";" in columns[0] or "\t" in columns[0]
    advice = " Save the list with commas between its columns." if one_column else ""
    shown = "; ".join(map(printable, sorted(set(faults))[:10]))
    raise OperatorError(
        f"The first line has to name {_columns(key_name)}: {shown}. Nothing was stored.{advice}"
    )


def _quoted(column: str) -> str:
    """An unknown name with its spaces seen, bounded: it may be a whole line."""
    return repr(column) if len(column) <= _SHOWN_MAX else f"{column[:_SHOWN_MAX]!r}…"


def _columns(key_name: str | None) -> str:
    key = f"{key_name}, " if key_name is not None else ""
    return f"the columns {key}{', '.join(_REQUIRED)} and, if you like, {', '.join(_OPTIONAL)}"
