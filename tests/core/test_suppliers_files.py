"""Suppliers' files as their programs write them: each is read rightly, or refused with advice."""

from __future__ import annotations

import datetime as dt
import io
import random
import re
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from openpyxl import Workbook

from petstore.core.categories import Category
from petstore.core.errors import OperatorError
from petstore.core.lists import sheets
from petstore.core.lists.columns import ColumnsUnclear
from petstore.core.lists.importing import BadRows
from petstore.core.lists.reading import SENT_SUFFIXES, open_list
from petstore.core.lists.stock_list import ListContext, Record, StockList
from tests.support.cases import every_case

KNOWN = ListContext(
    [
        Category(1, "Dogs"),
        Category(2, "Cats"),
        Category(3, "Birds"),
        Category(7, "Vögel"),
        Category(9, "cats "),
    ]
)
REX = [("Rex", 1, "sold")]
# A row, or a part of its fault.
Found = tuple[object, ...] | str


def read(
    content: bytes, key_name: str | None = None, known: ListContext = KNOWN
) -> tuple[StockList, list[Record]]:
    listed = open_list("csv", io.BytesIO(content), key_name, known)
    return listed, list(listed.records())


def refusal(content: bytes) -> str:
    with pytest.raises(OperatorError) as refused:
        read(content)
    return str(refused.value)


def check(records: list[Record], expected: Sequence[Found]) -> None:
    assert len(records) == len(expected), records
    for record, found in zip(records, expected, strict=True):
        if isinstance(found, str):
            assert found in record.fault, record
        else:
            assert record.row is not None, record
            assert record.row.values[: len(found)] == found


def workbook(fill: Callable[[Any], None], *, others: int = 0) -> bytes:
    """An .xlsx file with a sheet `Stock`, after so many empty ones."""
    book = Workbook()
    book.active.title = "Cover"
    for number in range(others - 1):
        book.create_sheet(f"Empty {number}")
    sheet = book.create_sheet("Stock") if others else book.active
    sheet.title = "Stock"
    fill(sheet)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def rows(*each: list[object]) -> Callable[[Any], None]:
    def fill(sheet: Any) -> None:
        for row in each:
            sheet.append(row)

    return fill


def expanded(content: bytes, change: Callable[[bytes], bytes], part: str = "worksheets/sheet") -> bytes:
    """A workbook whose sheet, or another part, was changed, as its XML."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if part in name else old.read(name))
    return out.getvalue()


def shared(content: bytes) -> bytes:
    """A workbook whose texts are in a part of their own, as Excel writes it."""
    texts: list[bytes] = []

    def share(found: re.Match[bytes]) -> bytes:
        texts.append(b"<si>%b</si>" % found[1])
        return b't="s"><v>%d</v>' % (len(texts) - 1)

    content = expanded(content, lambda xml: re.sub(rb't="inlineStr"><is>(.*?)</is>', share, xml))
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    named = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%b"/></Types>' % kind
    content = expanded(content, lambda xml: xml.replace(b"</Types>", named), part="[Content_Types].xml")
    out = io.BytesIO(content)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        namespace = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        archive.writestr("xl/sharedStrings.xml", b'<sst xmlns="%b">%b</sst>' % (namespace, b"".join(texts)))
    return out.getvalue()


def renamed(content: bytes, old: str, new: str, *, keep: bool = False) -> bytes:
    """A workbook that has a part under another name; under the old one, too, where nobody looks for it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as from_, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as to:
        for name in from_.namelist():
            content = from_.read(name).replace(f'"/{old}"'.encode(), f'"/{new}"'.encode())
            to.writestr(new if name == old else name, content)
        if keep:
            to.writestr(old, from_.read(old))
    return out.getvalue()


TEXTS: dict[str, tuple[str | bytes, Sequence[Found]]] = {
    "semicolons of Excel in Europe": ("Name;Category;Status\r\nRex;Dogs;Sold\r\n", REX),
    "tabs": ("name\tspecies\tstate\nRex\tdogs\tsold\n", REX),
    "bars": ("pet|group|availability\nRex|DOGS|sold\n", REX),
    "a mark and CRLF": ("\ufeffName,Category,Status\r\nRex,Dogs,sold\r\n", REX),
    "lines of old Macs": ("name,category,status\rRex,Dogs,sold\r", REX),
    "UTF-16 as Excel's Unicode text": ("Name\tCategory\tStatus\r\nRex\tDogs\tsold\r\n".encode("utf-16"), REX),
    "Windows-1252": ("Désignation;Category\nÜnal;Dogs\n".encode("cp1252"), [("Ünal", 1, None)]),
    "a line that says the separator": ("sep=;\r\nname;category;a,b,c\r\nRex;Dogs;1\r\n", [("Rex", 1, None)]),
    "another order, columns left out": (
        "Price,STATUS , Animal,category id\n9.99,in stock,Rex,1\n",
        [("Rex", 1, "available")],
    ),
    "cells of several lines": (
        'name;category;notes\nRex;Dogs;"shy;\nvery ""so"""\nMia;Dogs;\n',
        [("Rex", 1, None), ("Mia", 1, None)],
    ),
    "separators at the end": (
        "name;category;;\nRex;Dogs;;\n;;;\nMia;Dogs;;;;\n",
        [("Rex", 1, None), ("Mia", 1, None)],
    ),
    "titles above": ("Paws Ltd.;;\nStock of May;;\n\nName;Category;Status\nRex;Dogs;sold\n", REX),
    "a category by a number of Excel": ("name,category\nRex,1.0\n", [("Rex", 1, None)]),
    "a category and a fraction": (
        "name,category\nRex,1.02\nRex,1.0000003\n",
        ["'1.02' can't be the number of a category.", "'1.0000003' can't be"],
    ),
    "thousands": ('name,category\nRex,"1,234"\nRex,1.234\n', ["nothing between its digits"] * 2),
    "names of categories": (
        "name,category,status\nRex,Hamster,sold\nRex,CATS,sold\nRex,,sold\nRex,Dogs,maybe\n,Dogs,sold\n",
        [
            "'Hamster' is not a category of this store. Categories: Birds, Cats, cats , Dogs, Vögel. (",
            "Several categories are called 'CATS': write the number, 2 or 9.",
            "The category is missing.",
            "'maybe' is not a status: write available, pending, sold. (status:",
            "The name is missing. (name:",
        ],
    ),
    "accents as characters of their own": ("name,category\nRex,Vo\u0308gel\n", [("Rex", 7)]),
    "white space around a price": (
        "name, category, price\nRex, Dogs, 12.50\nRex,Dogs,9\u00a0\nRex,Dogs, \nRex,Dogs, 1 2\n",
        [("Rex", 1, None, 1_250), ("Rex", 1, None, 900), ("Rex", 1, None, None), "price: expected an amount"],
    ),
    "a row that lost a cell": ("name;category;status\nRex;Dogs\n", ["Expected 3 cells as in the first"]),
    "headings alone": ("name;category\n", []),
}  # fmt: skip


@every_case("kind", TEXTS)
def test_a_text_is_read(kind: str) -> None:
    """Whatever separates its cells, ends its lines and encodes its letters."""
    content, expected = TEXTS[kind]
    check(read(content if isinstance(content, bytes) else content.encode())[1], expected)


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "The list is empty"),
    "empty lines": (b"\r\n\r\n", "The list is empty"),
    "two columns of one name": (b"name;category;Name\nRex;1;Max\n", "the name, 'name' or 'Name'?"),
    "headings that nobody knows": (b"Bezeichnung;Tierart\nRex;Hund\n", "has 'Bezeichnung', 'Tierart'."),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 9, "as .xlsx without a password, or as CSV"),
    "a PDF": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "This is a PDF"),
    "gzip": (b"\x1f\x8b\x08\0\0\0\0\0", "Unpack it"),
    "a web page": (b"<!DOCTYPE html><table>", "This is a web page or XML."),
    "bytes": (b"name,category\n\0\1\2", "This is not a text file."),
    "an archive": (b"PK\x03\x04" + b"\0" * 50, "This Excel workbook can't be read"),
    "two codes": ("name,category\nÜnal,1\n".encode() + b"\xdc,1\n", "in UTF-8, line 3 is not"),
}  # fmt: skip


@every_case("kind", REFUSED)
def test_what_is_no_list_is_refused(kind: str) -> None:
    """The refusal says what to do about it."""
    content, said = REFUSED[kind]
    message = refusal(content)
    assert said in message
    assert message.endswith("Nothing was stored.")


class Endless(io.RawIOBase):
    """A line without an end, which counts what was read of it."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def read(self, size: int = -1) -> bytes:
        self.read_bytes += size
        return b"x" * size


def test_a_line_of_500_mb_is_refused_at_its_beginning() -> None:
    """However long it is, less than 1 MiB of it is read."""
    endless = Endless()
    tracemalloc.start()
    with pytest.raises(OperatorError, match="Line 1 is longer than 65,536 bytes"):
        open_list("csv", endless, None, KNOWN)  # type: ignore[arg-type]
    assert (endless.read_bytes < 1 << 20, tracemalloc.get_traced_memory()[1] < 8 << 20) == (True, True)
    tracemalloc.stop()


def test_a_heading_of_any_length_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heading's accents are sorted while nothing else of the process runs: a long one would hold it for
    minutes."""
    sorted_at_once = []

    def normalize(form: str, text: str) -> str:
        sorted_at_once.append(len(text))
        return text

    monkeypatch.setattr("petstore.core.lists.columns.unicodedata.normalize", normalize)
    marks = "\u0301\u0316" * 5_000
    check(read(f"name,category,{marks}\nRex,Dogs,\n".encode())[1], [("Rex", 1, None)])
    assert max(sorted_at_once) == 1_000


def test_a_category_of_any_length_costs_little() -> None:
    """A line of digits is read in one pass: for each digit anew it would hold the process for a minute."""
    began = time.process_time()
    check(read(f"name,category\nRex,{'1' * 60_000}\n".encode())[1], ["expected an integer from"])
    assert time.process_time() - began < 5.0


def test_how_it_was_read_is_said() -> None:
    """What was left out, the encoding, and where the columns have their names."""
    listed, _ = read("Paws;\nName;Category;Cage\nÜnal;Dogs;9\n".encode("cp1252"))
    reading = listed.reading()
    assert reading.notes == [
        "The text was read as Windows-1252.",
        "The names of the columns stand in line 2.",
        "Left out: 'Cage'.",
    ]
    assert (reading.names, reading.meanings) == (["name", "category", "cage"], ["name", "categoryId", ""])
    assert reading.rows == [["Name", "Category", "Cage"], ["Ünal", "Dogs", "9"]]


def test_rejects_are_read_again() -> None:
    """Rejects are read by the order and names of the supplier's columns, past the faults in front."""
    listed, records = read(b"Price;Species;Animal\n9;Hamster;Rex\n")
    out = io.BytesIO()
    bad = BadRows(listed, out)
    for record in records:
        bad.add(record.line, record.fault, record.raw)
    assert out.getvalue().startswith(b"faults,Price,Species,Animal\r\n\"line 2: 'Hamster' is not a category")
    check(read(out.getvalue().replace(b",Hamster,", b",Dogs,"))[1], [("Rex", 1, None)])


class TestRemembered:
    """What staff have said of columns counts for every list with these headings."""

    def test_it_is_used_in_any_order(self) -> None:
        """The column of keys may stand anywhere, and it is part of what was agreed to."""
        with pytest.raises(ColumnsUnclear) as asked:
            read(b"Art-Nr;Bezeichnung;Tierart\n7;Rex;Dogs\n")
        assert asked.value.reading.rows == [["Art-Nr", "Bezeichnung", "Tierart"], ["7", "Rex", "Dogs"]]
        said = {"art nr": "key", "bezeichnung": "name", "tierart": "categoryId"}
        known = KNOWN._replace(columns={"art nr\nbezeichnung\ntierart": said})
        listed, records = read(b"TIERART,art nr,Bezeichnung\nDogs,7,Rex\n", known=known)
        check(records, [("Rex", 1, None)])
        assert (listed.key_name, records[0].row and records[0].row.source_key) == ("key", "7")
        assert listed.meaning() == "categoryIdkeynamedogs=1\n"

    def test_columns_of_one_name_and_of_none(self) -> None:
        """Are told apart by their place."""
        known = KNOWN._replace(columns={"column 3\nname\nname+": {"name+": "name", "column 3": "categoryId"}})
        check(read(b"name;name;\nx;Rex;Dogs\n", known=known)[1], [("Rex", 1, None)])


class TestExcel:
    def test_a_sheet_with_excels_numbers_and_dates_is_read(self) -> None:
        """Numbers that Excel has made of identifiers, dates, empty rows and cells at the end."""
        content = workbook(
            rows(
                ["Name", "Category", "SKU", None, "Status"],
                ["Rex", 1.0, 4711.0, None, "sold"],
                [],
                [dt.date(2026, 5, 1), "dogs", "007"],
                [True, 2, 12.5],
            )
        )
        _, records = read(content, "sku")
        check(records, [("Rex", 1, "sold"), ("2026-05-01", 1, None), ("TRUE", 2, None)])
        assert [(each.line, each.row and each.row.source_key) for each in records] == [
            (2, "4711"), (4, "007"), (5, "12.5"),
        ]  # fmt: skip

    def test_a_workbook_called_csv_is_known_by_its_bytes(self) -> None:
        """The first one of several sheets that has rows is read, which the report says."""
        listed, records = read(workbook(rows(["name", "category"], ["Rex", "Dogs"]), others=2))
        check(records, [("Rex", 1, None)])
        assert listed.reading().notes == ["Of 3 sheets the first one with rows was read, 'Stock'."]

    def test_a_hidden_sheet_comes_last(self) -> None:
        """Nobody sees its rows; it is read where no other sheet has any."""

        def fill(sheet: Any) -> None:
            rows(["name", "category"], ["Rex", "Dogs"])(sheet)
            hidden = sheet.parent.create_sheet("Choices", 0)
            hidden.sheet_state = "hidden"
            rows(["name", "category"], ["Mia", "Cats"])(hidden)

        listed, records = read(workbook(fill))
        check(records, [("Rex", 1, None)])
        assert listed.reading().notes == ["Of 2 sheets the first one with rows was read, 'Stock'."]

    def test_the_values_that_excel_has_computed_are_read(self) -> None:
        """What Excel has computed is read; where it has not, or where it failed, the row has a fault."""
        content = workbook(
            rows(["name", "category", "x"], ["=A9", "Dogs", "=1"], ["=A8", "Dogs"], ["Rex", "#N/A"])
        )
        computed = {b"<f>A9</f><v />": b"<f>A9</f><v>Rex</v>", b'<c r="A2">': b'<c r="A2" t="str">'}

        def compute(xml: bytes) -> bytes:
            for old, new in computed.items():
                assert old in xml
                xml = xml.replace(old, new)
            return xml

        faults = ["column 1 is a formula without a value: open the file in Excel", "an error, #N/A"]
        check(read(expanded(content, compute))[1], [("Rex", 1, None), *faults])

    @pytest.mark.parametrize("write", [shared, bytes])
    def test_characters_that_excel_escapes_are_read_as_they_were(
        self, write: Callable[[bytes], bytes]
    ) -> None:
        """Excel escapes what XML does not keep: the ends of lines that came from elsewhere, and a text that
        looks like an escape. What is not a character stays as it is."""
        names = ["Rex_x005F_x000D_", "x005F_", "_x00e9_", "_xD83D_", "_x0000_"]
        listed: list[list[object]] = [[name, 1, "Shy._x000D_\nBites."] for name in names]
        found = read(write(workbook(rows(["name", "category", "note"], *listed))))[1]
        as_shown = ["Rex_x000D_", "x005F_", "é", "_xD83D_", "_x0000_"]
        check(found, [(name, 1, None, None, "Shy.\nBites.") for name in as_shown])

    def test_what_a_formula_leaves_in_the_last_digits(self) -> None:
        """Excel computes 1.1 * 3 as 3.3000000000000003, and shows 3.3."""
        content = workbook(rows(["name", "category", "price"], ["Rex", 1, 77.5], [0.75, 1, 2]))

        def compute(xml: bytes) -> bytes:
            return xml.replace(b"77.5", b"3.3000000000000003").replace(b"0.75", b"0.30000000000000004")

        expected: list[Found] = [("Rex", 1, None, 330), ("0.3", 1, None, 200)]
        check(read(expanded(content, compute))[1], expected)

    def test_identifiers_of_many_digits_stay_apart(self) -> None:
        """A program in Java writes each number as a float."""
        content = workbook(rows(["name", "category", "sku"], ["Rex", 1, 77.5], ["Mia", 2, 0.75]))

        def compute(xml: bytes) -> bytes:
            return xml.replace(b"77.5", b"1.234567890123456E15").replace(b"0.75", b"1.234567890123457E15")

        _, records = read(expanded(content, compute), "sku")
        assert len({each.row and each.row.source_key for each in records}) == 2

    def test_a_merged_heading_of_two_rows_names_all_its_columns(self) -> None:
        """A heading of two rows names all its columns; a status in the first of them is not lost."""

        def fill(sheet: Any) -> None:
            rows(
                ["Our animals"],
                ["Animal", None, "Status"],
                ["Name", "Species", None],
                ["Rex", "Dogs", "sold"],
            )(sheet)
            sheet.merge_cells("A1:C1")
            sheet.merge_cells("A2:B2")
            sheet.merge_cells("C2:C3")

        check(read(workbook(fill))[1], REX)

    def test_a_bomb_is_refused_before_it_is_expanded(self) -> None:
        """The archive's directory says how large it is: nothing of it is read."""
        content = workbook(rows(["name", "category"]))
        bomb = expanded(content, lambda xml: xml + b" " * (8 << 20))
        tracemalloc.start()
        assert "Unpacked it would be too large" in refusal(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()

    def test_what_openpyxl_keeps_is_small(self) -> None:
        """A megabyte of styles that compress well would take gigabytes of memory."""
        styles = b"<font/>" * 700_000 + random.Random(7).randbytes(60_000)
        content = expanded(workbook(rows(["name", "category"])), lambda _: styles, part="xl/styles")
        assert "Unpacked it would be too large" in refusal(content)

    def test_what_openpyxl_keeps_has_any_name(self) -> None:
        """The part of the workbook, and what says which parts there are: together they are small."""
        content, noise = (
            workbook(rows(["name", "category"])),
            random.Random(7).randbytes(40_000).hex().encode(),
        )

        def pad(xml: bytes) -> bytes:
            return xml + b"<!--" + noise * 60 + b"-->"

        moved = renamed(content, "xl/workbook.xml", "xl/worksheets/book.xml", keep=True)
        moved = renamed(moved, "xl/_rels/workbook.xml.rels", "xl/worksheets/_rels/book.xml.rels", keep=True)
        check(read(moved)[1], [])
        assert "Unpacked it would be too large" in refusal(expanded(moved, pad, part="worksheets/book.xml"))

    def test_a_link_in_each_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Links are not part of what is kept, however many there are."""

        def fill(sheet: Any) -> None:
            sheet.append(["name", "category"])
            for number in range(2, 402):
                sheet.append(["Rex", 1])
                sheet.cell(number, 1).hyperlink = f"https://www.supplier.example/animals/{number}"

        monkeypatch.setattr(sheets, "_KEPT_BYTES_MAX", 40_000)
        assert len(read(workbook(fill))[1]) == 400

    def test_many_sheets_of_one_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Are not read as often as they are named, before they are counted."""
        named = b'<sheet name="%d" sheetId="%d" state="visible" r:id="rId1"/>'
        content = expanded(
            workbook(rows(["name", "category"], *[["Rex", 1]] * 999)),
            lambda xml: xml.replace(
                b"</sheets>", b"".join(named % (n, n) for n in range(9, 20)) + b"</sheets>"
            ),
            part="xl/workbook.xml",
        )
        assert len(read(content)[1]) == 999
        monkeypatch.setattr(sheets, "EXPANDED_BYTES_MAX", 200_000)
        assert "Unpacked it would be too large" in refusal(content)

    @every_case(
        ("part", "mark", "bomb"),
        [
            ("sheet1", b"</row>", b"<c/>" * 200_001),
            ("sheet1", b"<sheetData", b"<a>" * 101 + b"</a>" * 101),
            ("sharedStrings", b"</si>", b"<r/>" * 200_001),
            ("sharedStrings", b"<sst", b'<!DOCTYPE sst [<!ENTITY a "aaaa">]>'),
            ("workbook.xml", b"<workbook", b'<!DOCTYPE workbook [<!ENTITY a "aaaa">]>'),
        ],
    )
    def test_what_takes_more_memory_than_its_bytes(self, part: str, mark: bytes, bomb: bytes) -> None:
        """Cells of one row take a hundred times as much, and a document type can say each text a hundred
        times."""
        noise = b"<!--" + random.Random(7).randbytes(9_000).hex().encode() + b"-->"
        content = shared(workbook(rows(["name", "category"], ["Rex", "Dogs"])))
        assert "can't be read" in refusal(
            expanded(content, lambda xml: xml.replace(mark, noise + bomb + mark, 1), part=part)
        )

    @pytest.mark.parametrize(("part", "mark"), [("sheet1", b"<sheetData"), ("sharedStrings", b"<si>")])
    def test_what_is_no_row_and_no_text_is_not_kept(self, part: str, mark: bytes) -> None:
        """However much of it stands there."""
        noise = b"<!--" + random.Random(7).randbytes(9_000).hex().encode() + b"-->"
        content = shared(workbook(rows(["name", "category"], ["Rex", "Dogs"])))
        long = expanded(content, lambda xml: xml.replace(mark, noise + b"<a/>" * 50_001 + mark, 1), part=part)
        tracemalloc.start()
        check(read(long)[1], [("Rex", 1, None)])
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
        tracemalloc.stop()

    def test_a_sheet_may_be_any_part(self) -> None:
        """A sheet's formulas are seen whatever its part's name is."""
        content = renamed(
            workbook(rows(["name", "category"], ["=A9", "Dogs"])), "xl/worksheets/sheet1.xml", "xl/one.xml"
        )
        check(read(content)[1], ["column 1 is a formula without a value"])

    @every_case("number", ["-1", "0", "1", "2"])
    def test_rows_and_cells_in_no_order_are_refused(self, number: str) -> None:
        """A sheet with rows or cells out of order is refused, so that none is left out in silence."""
        content = workbook(rows(["name", "category"], ["Rex", 1], ["Tom", 2]))
        forged = expanded(content, lambda xml: xml.replace(b'<row r="3"', b'<row r="%s"' % number.encode()))
        assert f"Its sheet has row {number} after row 2. Save the sheet as CSV" in refusal(forged)
        mixed = expanded(content, lambda xml: xml.replace(b'r="A3"', b'r="C3"'))
        assert "The cells of row 3 are not in the order of their columns." in refusal(mixed)

    def test_a_workbook_has_bounds_of_rows_columns_and_sheets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What a sheet says of its own size does not count."""
        many = workbook(rows(["name", "category"], *[["Rex", 1]] * 20))
        check(read(expanded(many, lambda xml: xml.replace(b'ref="A1:B21"', b'ref="A1:XFD1048576"')))[1],
              [("Rex", 1, None)] * 20)  # fmt: skip
        far = expanded(many, lambda xml: xml.replace(b"</row>", b'<c r="XFD1"/></row>', 1))
        assert len(read(far)[1]) == 20
        monkeypatch.setattr(sheets, "CELLS_MAX", 16_384)
        assert "more than 16,384 cells" in refusal(far)
        monkeypatch.setattr(sheets, "ROWS_MAX", 20)
        assert "more than 20 rows" in refusal(many)
        assert "more than 200 columns" in refusal(workbook(rows(["name"] * 201)))
        assert "It has 51 sheets" in refusal(workbook(rows([]), others=50))

    def test_a_broken_workbook_is_refused(self) -> None:
        """Cut off, with bad XML, or an archive of something else."""
        content = workbook(rows(["name", "category"]))
        for broken in (content[:-200], expanded(content, lambda xml: xml[:-50])):
            assert "open it in Excel, save it as .xlsx or as CSV" in refusal(broken)
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("list.csv", "name,category\n")
        assert SENT_SUFFIXES[".ods"] == "csv"  # so that it is read, and not asked what it is
        assert "such as .ods. Save the list in it as .xlsx or CSV" in refusal(other.getvalue())
