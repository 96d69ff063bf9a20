"""Excel workbooks (.xlsx) as rows of cells, by openpyxl, which is loaded for them alone.

A workbook is a ZIP archive: it is refused by what its directory says before anything of it is expanded. A
part may have any name, so what bounds a part goes by how openpyxl reads it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import IO, Any, BinaryIO, TypeVar
from xml.etree.ElementTree import Element, XMLPullParser
from zipfile import ZipFile

from petstore.core.errors import OperatorError
from petstore.core.lists.columns import quoted
from petstore.core.lists.tables import Row

ROWS_MAX = 200_000
COLUMNS_MAX = 200
SHEETS_MAX = 50
CELLS_MAX = ROWS_MAX * COLUMNS_MAX
EXPANDED_BYTES_MAX = 128 << 20
# openpyxl makes objects of what it reads whole, some 70 bytes for each byte, and keeps them.
_KEPT_BYTES_MAX = 4 << 20
_PARTS_MAX = 1_000
# Elements of one row, where 16,384 cells may have a format alone, or of one text.
_ELEMENTS_MAX = 200_000
_DEPTH_MAX = 100
_PIECE_BYTES = 1 << 14
# Excel writes none. What it defines may be a hundred times as long where it is used.
_DOCUMENT_TYPE = b"<!DOCTYPE"
# A sheet or the texts of a workbook take a tenth of their bytes in it; a bomb takes a thousandth.
_RATIO_MAX = 100
_SMALL_BYTES = 1 << 20
_FORMULA = re.compile(rb"<([A-Za-z0-9_]{1,20}:)?f[ />]")
_OVERLAP_BYTES = 24
_EXACT_MAX = 10**15  # an integer beyond has lost digits in Excel
_DIGITS_SHOWN = 15  # a sum is kept as 3.3000000000000003
_AS_CSV = "Save the sheet as CSV, and send that."
# A character that XML does not keep, such as the carriage return of `_x000D_` (ECMA-376, ST_Xstring). Half of
# a pair of surrogates and NUL are not text.
_ESCAPED = re.compile("_x(?!0000|[Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")
_T = TypeVar("_T")


class SheetTable:
    """Implements Table for the first sheet with rows. A formula is what Excel has last computed of it."""

    def __init__(self, file: BinaryIO) -> None:
        _readable(_check_archive, file)
        self._values = _readable(_open, file, True)
        self._count = len(self._values.worksheets)
        if self._count > SHEETS_MAX:
            raise _refusal(f"It has {self._count:,} sheets, and at most {SHEETS_MAX} can be read")
        # To read a sheet twice takes twice as long.
        has_formulas = _readable(_has_formulas, self._values)
        self._formulas = _readable(_open, file, False) if has_formulas else None
        # What is hidden, such as the choices of a cell, comes last: nobody sees it.
        indexes = sorted(
            range(self._count), key=lambda at: self._values.worksheets[at].sheet_state != "visible"
        )
        self._index = next((index for index in indexes if next(self._sheet_rows(index), None)), 0)

    def rows(self) -> Iterator[Row]:
        return self._sheet_rows(self._index)

    def _sheet_rows(self, index: int) -> Iterator[Row]:
        rows = _cells(self._values.worksheets[index])
        formula_rows = _cells(self._formulas.worksheets[index]) if self._formulas is not None else None
        line = cells = 0
        while (values := _readable(next, rows, None)) is not None:
            formulas = values if formula_rows is None else _readable(next, formula_rows)
            line += 1
            if line > ROWS_MAX:
                raise _refusal(f"Its sheet has more than {ROWS_MAX:,} rows")
            cells += len(values)
            if cells > CELLS_MAX:
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
        """The cells of a sheet have indexes; what stands beside the columns has no name."""
        return (cells + [""] * (width - len(cells)))[:width]

    def notes(self) -> list[str]:
        if self._count < 2:
            return []
        name = quoted(self._values.worksheets[self._index].title)
        return [f"Of {self._count} sheets the first one with rows was read, {name}."]


def _check_archive(file: BinaryIO) -> None:
    with ZipFile(file) as archive:
        parts = archive.infolist()
    expanded = sum(part.file_size for part in parts)
    is_bomb = any(part.file_size > max(_SMALL_BYTES, _RATIO_MAX * part.compress_size) for part in parts)
    if expanded > EXPANDED_BYTES_MAX or len(parts) > _PARTS_MAX or is_bomb:
        raise _too_large()
    if not any(part.filename == "xl/workbook.xml" for part in parts):
        raise OperatorError(
            "This is no Excel workbook (.xlsx), but an archive or the file of another program, such as .ods."
            " Save the list in it as .xlsx or CSV, and send that. Nothing was stored."
        )


class _Archive(ZipFile):
    """Bounds what openpyxl reads of a workbook when it opens it."""

    kept = passed = 0  # bytes

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:
        self.kept += self.getinfo(name).file_size
        if self.kept > _KEPT_BYTES_MAX:
            raise _too_large()
        with ZipFile.open(self, name) as part:
            content = part.read()
        _check_types(content)
        return content

    def open(self, name: Any, *arguments: Any, **options: Any) -> Any:
        """A sheet passes by once; any number of them may be one part. openpyxl looks for its size, and would
        keep what it passes."""
        self.passed += self.getinfo(name).file_size
        if self.passed > EXPANDED_BYTES_MAX:
            raise _too_large()
        return BytesIO(b"<unread/>")


def _open(file: BinaryIO, only_values: bool) -> Any:
    from openpyxl.reader.excel import ExcelReader

    reader = ExcelReader(file, read_only=True, data_only=only_values, keep_links=False)
    reader.archive = _Archive(file)
    # What a sheet leads to, such as a link in each row, would be read and left alone.
    reader.valid_files = [name for name in reader.valid_files if not name.endswith(".rels")]
    reader.read_chartsheet = lambda *_: None  # it has no rows, and would be kept
    reader.read_strings = partial(_read_texts, reader)
    reader.read()
    reader.wb._archive = ZipFile(file)  # rows are bounded one by one
    return reader.wb


def _read_texts(reader: Any) -> None:
    from openpyxl.cell.text import Text
    from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS

    found = reader.package.find(SHARED_STRINGS)
    if found is not None:
        with ZipFile.open(reader.archive, found.PartName[1:]) as part:
            texts = map(Text.from_tree, _elements(part, f"{{{SHEET_MAIN_NS}}}si"))
            reader.shared_strings = [text.content for text in texts]


def _elements(part: IO[bytes], tag: str) -> Iterator[Element]:
    """The elements with a tag, one at a time: no other one is kept. openpyxl's own loops keep all."""
    parser: Any = XMLPullParser(("start", "end"))
    opened, before = list[Element](), b""
    begun = kept = 0  # the depth of the one that is read; its elements
    while piece := part.read(_PIECE_BYTES):
        before = _check_types(before + piece)
        parser.feed(piece)
        for event, element in parser.read_events():
            if event == "start":
                opened.append(element)
                begun = begun or (len(opened) if element.tag == tag else 0)
                kept += begun > 0
                if kept > _ELEMENTS_MAX or len(opened) > _DEPTH_MAX:
                    raise _too_large()
                continue
            if len(opened) == begun:
                yield element
                begun = kept = 0
            opened.pop()
            if opened and not begun:
                opened[-1].remove(element)
    parser.close()


def _check_types(content: bytes) -> bytes:
    """Refuse a document type, in UTF-16 too. Returns what may be the beginning of one."""
    plain = content.replace(b"\0", b"")
    if _DOCUMENT_TYPE in plain:
        raise _refusal("It has a document type")
    return plain[1 - len(_DOCUMENT_TYPE) :]


def _has_formulas(book: Any) -> bool:
    for sheet in book.worksheets:
        with sheet._get_source() as part:
            before = b""
            while piece := part.read(_SMALL_BYTES):
                if _FORMULA.search(before + piece):
                    return True
                before = piece[-_OVERLAP_BYTES:]
    return False


def _cells(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """The cells of each row, by their columns. openpyxl's own iteration drops what is not in its order."""
    from openpyxl.worksheet._reader import ROW_TAG, WorkSheetParser

    book, line = sheet.parent, 0
    options = {"data_only": book.data_only, "epoch": book.epoch, "date_formats": book._date_formats}
    with sheet._get_source() as part:
        parser = WorkSheetParser(
            part, sheet._shared_strings, **options, timedelta_formats=book._timedelta_formats
        )
        for number, cells in map(parser.parse_row, _elements(part, ROW_TAG)):
            columns = [cell["column"] for cell in cells]
            if number <= line:
                raise _refusal(f"Its sheet has row {number} after row {line}")
            if columns != sorted(set(columns)):
                raise _refusal(f"The cells of row {number} are not in the order of their columns")
            for _ in range(line + 1, number):
                yield ()
            line = number
            yield sheet._get_row(cells)


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


def _too_large() -> OperatorError:
    return _refusal("Unpacked it would be too large")


def _refusal(reason: str) -> OperatorError:
    return OperatorError(f"This Excel workbook can't be read. {reason}. {_AS_CSV} Nothing was stored.")


def _text(value: object) -> str:
    """A value as a person sees it in the sheet. Excel keeps each integer as a number with a fraction."""
    match value:
        case None:
            return ""
        case str() if "_x" in value:
            return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < _EXACT_MAX:
            return str(int(value))
        case float() if not value.is_integer():  # the digits of an identifier are all kept
            return f"{value:.{_DIGITS_SHOWN}g}"
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
    return str(value)
