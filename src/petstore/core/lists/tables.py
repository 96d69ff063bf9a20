"""A supplier's file as rows of cells, whatever program has written it; here CSV in all its dialects."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO, Protocol

from petstore.core.errors import OperatorError
from petstore.core.lists.lines import Lines
from petstore.core.lists.spreadsheets import read_cell

HEADING_ROWS = 10  # the names of the columns stand in one of them
_SEPARATORS = ",;\t|"
_SEPARATOR_LINE = re.compile('"?sep=(.)"?[\r\n]*')  # names the separator for Excel

# How many columns of a row have a name that is known.
CountKnown = Callable[[Sequence[str]], int]
# The line where a row begins, from 1; its cells; and what is wrong with the cells at some indexes.
Row = tuple[int, list[str], Mapping[int, str]]
_FAULTLESS: Mapping[int, str] = {}


class Table(Protocol):
    """Rows of cells. Raises OperatorError for a file that can't be read to its end."""

    def rows(self) -> Iterator[Row]:
        """Each row that is not empty."""

    def fitted(self, cells: list[str], width: int) -> list[str]:
        """The cells of a row at this width, where empty cells at its end are all that differs."""

    def notes(self) -> list[str]:
        """Sentences about how the file was read, where that was not plain. Ask after the rows."""


class CsvTable:
    """Implements Table for CSV (RFC 4180) with any usual separator."""

    def __init__(self, file: BinaryIO, known: CountKnown) -> None:
        self._lines = Lines(file)
        sample = self._lines.sample()
        named = _SEPARATOR_LINE.fullmatch(sample[: sample.find("\n") + 1])
        self._separator = named[1] if named else _separator(sample, known)
        self._reader = csv.reader(self._lines, delimiter=self._separator, strict=True)
        if named:
            next(self._reader)

    def rows(self) -> Iterator[Row]:
        while True:
            line = self._reader.line_num + 1
            self._lines.begin_row()
            try:
                cells = next(self._reader, None)
            except csv.Error as error:
                reason, _, _ = str(error).partition(" - ")  # advice for programmers follows
                raise OperatorError(f"Line {line} is not CSV: {reason}. Nothing was stored.") from None
            if cells is None:
                return
            if any(cells):  # a line of separators is not a row
                is_safe = any(cell[:1] == "'" for cell in cells)
                yield line, [read_cell(cell) for cell in cells] if is_safe else cells, _FAULTLESS

    def fitted(self, cells: list[str], width: int) -> list[str]:
        """A separator too much is harmless; a row that is short may have lost cells anywhere."""
        return cells[:width] if not any(cells[width:]) else cells

    def notes(self) -> list[str]:
        return ["The text was read as Windows-1252."] if self._lines.is_windows else []


def _separator(sample: str, known: CountKnown) -> str:
    """The separator by which most columns are known, else the one that makes most columns."""

    def success(separator: str) -> tuple[int, int]:
        rows = csv.reader(sample.splitlines(keepends=True), delimiter=separator)
        try:
            first = list(islice((row for row in rows if row), HEADING_ROWS))
        except csv.Error:
            return 0, 0
        return max(map(known, first), default=0), max(map(len, first[:1]), default=0)

    return max(_SEPARATORS, key=success)
