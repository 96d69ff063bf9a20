"""Excel workbooks (.xlsx) as rows of cells, by openpyxl, which is loaded for them alone.

A workbook is a ZIP archive: it is refused by what its directory says before anything of it is expanded.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar
from zipfile import ZipFile

from petstore.core.errors import OperatorError
from petstore.core.lists.columns import quoted
from petstore.core.lists.tables import Row

ROWS_MAX = 200_000
COLUMNS_MAX = 200
SHEETS_MAX = 50
CELLS_MAX = ROWS_MAX * COLUMNS_MAX
EXPANDED_BYTES_MAX = 128 << 20
# Of these parts openpyxl makes objects, some 70 bytes for each byte, and keeps them.
_KEPT = ("[Content_Types].xml", "xl/workbook.xml", "xl/styles.xml")
_KEPT_BYTES_MAX = 4 << 20
_PARTS_MAX = 1_000
# A sheet or the texts of a workbook take a tenth of their bytes in it; a bomb takes a thousandth.
_RATIO_MAX = 100
_SMALL_BYTES = 1 << 20
_FORMULA = re.compile(rb"<([A-Za-z0-9_]{1,20}:)?f[ />]")
_OVERLAP_BYTES = 24
_EXACT_MAX = 10**15  # an integer beyond has lost digits in Excel
_AS_CSV = "Save the sheet as CSV, and send that."
_T = TypeVar("_T")


class SheetTable:
    """Implements Table for the first sheet with rows. A formula is what Excel has last computed of it."""

    def __init__(self, file: BinaryIO) -> None:
        _readable(_check_archive, file)
        self._values = _readable(_open, file, True)
        # To read a sheet twice takes twice as long.
        self._formulas = _readable(_open, file, False) if _readable(_has_formulas, file) else None
        self._count = len(self._values.worksheets)
        if self._count > SHEETS_MAX:
            raise _refusal(f"It has {self._count:,} sheets, and at most {SHEETS_MAX} can be read")
        places = range(self._count)
        self._place = next((place for place in places if next(self._sheet_rows(place), None)), 0)

    def rows(self) -> Iterator[Row]:
        return self._sheet_rows(self._place)

    def _sheet_rows(self, place: int) -> Iterator[Row]:
        rows = _cells(self._values.worksheets[place])
        formula_rows = _cells(self._formulas.worksheets[place]) if self._formulas is not None else None
        line = looked_at = 0
        while (values := _readable(next, rows, None)) is not None:
            formulas = values if formula_rows is None else _readable(next, formula_rows)
            line += 1
            if line > ROWS_MAX:
                raise _refusal(f"Its sheet has more than {ROWS_MAX:,} rows")
            looked_at += len(values)
            if looked_at > CELLS_MAX:
                raise _refusal(f"Its sheet has more than {CELLS_MAX:,} cells")
            texts, faults = list[str](), dict[int, str]()
            for column, (value, formula) in enumerate(zip(values, formulas, strict=True)):
                if value.data_type == "e":
                    faults[column] = f"The cell in column {column + 1} is an error, {value.value}."
                elif formula.data_type == "f" and value.value is None:
                    faults[column] = (
                        f"The cell in column {column + 1} is a formula without a value: open the file in"
                        " Excel, save it, and send it again."
                    )
                texts.append(_text(formula.value if column in faults else value.value))
            while texts and not texts[-1]:
                del texts[-1]
            if len(texts) > COLUMNS_MAX:
                raise _refusal(f"Row {line} has more than {COLUMNS_MAX} columns")
            if texts:
                yield line, texts, faults

    def fitted(self, cells: list[str], width: int) -> list[str]:
        """The cells of a sheet have places; what stands beside the columns has no name."""
        return (cells + [""] * (width - len(cells)))[:width]

    def notes(self) -> list[str]:
        if self._count < 2:
            return []
        name = quoted(self._values.worksheets[self._place].title)
        return [f"Of {self._count} sheets the first one with rows was read, {name}."]


def _check_archive(file: BinaryIO) -> None:
    with ZipFile(file) as archive:
        parts = archive.infolist()
    expanded = sum(part.file_size for part in parts)
    is_bomb = any(part.file_size > max(_SMALL_BYTES, _RATIO_MAX * part.compress_size) for part in parts)
    kept = sum(part.file_size for part in parts if part.filename in _KEPT)
    if expanded > EXPANDED_BYTES_MAX or kept > _KEPT_BYTES_MAX or len(parts) > _PARTS_MAX or is_bomb:
        raise _refusal("Unpacked it would be too large")
    if not any(part.filename == "xl/workbook.xml" for part in parts):
        raise OperatorError(
            "This is an archive, and no Excel workbook (.xlsx). Send the list that is in it as CSV or .xlsx."
            " Nothing was stored."
        )


def _has_formulas(file: BinaryIO) -> bool:
    with ZipFile(file) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/"):
                with archive.open(name) as part:
                    before = b""
                    while piece := part.read(_SMALL_BYTES):
                        if _FORMULA.search(before + piece):
                            return True
                        before = piece[-_OVERLAP_BYTES:]
    return False


def _open(file: BinaryIO, only_values: bool) -> Any:
    from openpyxl import load_workbook

    return load_workbook(file, read_only=True, data_only=only_values, keep_links=False)


def _cells(sheet: Any) -> Iterator[tuple[Any, ...]]:
    sheet.reset_dimensions()  # programs write wrong ones
    rows: Iterator[tuple[Any, ...]] = sheet.iter_rows()
    return rows


def _readable(work: Callable[..., _T], *arguments: object) -> _T:
    """Do what reads the file. Raises OperatorError: openpyxl raises nearly anything for a broken workbook."""
    try:
        return work(*arguments)
    except OperatorError:
        raise
    except Exception as error:
        raise OperatorError(
            "This Excel workbook can't be read: open it in Excel, save it as .xlsx or as CSV, and send that."
            " Nothing was stored."
        ) from error


def _refusal(reason: str) -> OperatorError:
    return OperatorError(f"This Excel workbook can't be read. {reason}. {_AS_CSV} Nothing was stored.")


def _text(value: object) -> str:
    """A value as a person sees it in the sheet. Excel keeps each integer as a number with a fraction."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < _EXACT_MAX:
            return str(int(value))
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
    return str(value)
