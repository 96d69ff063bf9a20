"""Reads stock lists: tables with named columns, or a JSON object a line; rows with lines and faults.

The rows that can't be imported go to a file of the same format, to be corrected and imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from petstore.core.errors import Invalid, InvalidBody, InvalidJson, OperatorError
from petstore.core.lists.columns import FAULTS
from petstore.core.lists.lines import LINE_BYTES_MAX, without_mark
from petstore.core.lists.stock_list import ListContext, Record, StockList, members_of, row_of
from petstore.core.lists.table_lists import TableList
from petstore.core.pets import MEMBERS
from petstore.core.printable import printable
from petstore.core.stock import StockRow, row_schema


class JsonList(StockList):
    """A JSON object a line. Empty lines and those that begin with # are left out."""

    def __init__(self, file: BinaryIO, key_name: str | None) -> None:
        self._file = file
        self.key_name = key_name
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
                yield Record(number, None, fault, b"# The line is left out here.\n")
            elif raw and not raw.startswith(b"#"):
                yield self._record(number, raw)
        if number == 0:
            raise OperatorError("The list is empty; it has to have a JSON object in each line.")

    def _record(self, line: int, raw: bytes) -> Record:
        try:
            return Record(line, row_of(line, self._schema.read(raw)))
        except (InvalidBody, InvalidJson) as error:
            return Record(line, None, error.message.replace("The body", "The line"), raw + b"\n")

    def reject(self, line: int, fault: str, raw: bytes) -> bytes:
        return f"# line {line}: {printable(fault)}\n".encode() + raw

    def raw(self, row: StockRow) -> bytes:
        return msgspec.json.encode(members_of(row, self.key_name)) + b"\n"


# The formats by the end of a file's name: of files that are written, and of those that suppliers send. Old
# Excel files and OpenDocument are refused with advice.
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
SENT_SUFFIXES = {**SUFFIXES, **dict.fromkeys((".tsv", ".txt", ".xlsx", ".xlsm", ".xls", ".ods"), "csv")}
FORMATS = ("csv", "jsonl")


def open_list(form: str, file: BinaryIO, key_name: str | None, known: ListContext) -> StockList:
    """The list in a file that can be read again from its beginning; `form` is one of FORMATS, and `csv` is
    any table. Raises OperatorError for a file that is not a list."""
    return JsonList(file, key_name) if form == "jsonl" else TableList(file, key_name, known)


def check_key_column(name: str) -> None:
    """Raise Invalid unless a list can have this name as the column of its source keys."""
    if name in (*MEMBERS, FAULTS) or not name:
        raise Invalid("key_name", f"{name!r} can't be the column of the source keys.")
    if not name.isprintable() or '"' in name or "\\" in name:
        raise Invalid(
            "key_name",
            f"{name!r} can't be the column of the source keys: use printable characters but \" and \\.",
        )
