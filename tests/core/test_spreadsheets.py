"""CSV that programs read back exactly and that spreadsheets do not run."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from petstore.core.lists.spreadsheets import csv_bytes, read_cell, safe_cell
from tests.support.cases import every_case


@every_case("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "'=1", "''-x"])
def test_a_formula_becomes_text(text: str) -> None:
    """Each beginning that a spreadsheet runs gets an apostrophe in front, and loses it when it is read."""
    assert safe_cell(text) == f"'{text}"
    assert read_cell(f"'{text}") == text


@given(st.text(alphabet=st.one_of(st.sampled_from("'=+-@\t\r\n,\"ab"), st.characters(codec="utf-8"))))
def test_every_text_comes_back(text: str) -> None:
    """Quotes, commas, line ends and apostrophes included, by any reader of RFC 4180."""
    (row,) = csv.reader(io.StringIO(csv_bytes([[text, "end"]]).decode(), newline=""), strict=True)
    assert [read_cell(cell) for cell in row] == [text, "end"]


def test_numbers_and_gaps_stay() -> None:
    """A negative number is not a formula, None is an empty cell, and lines end as RFC 4180 says."""
    assert csv_bytes([["categoryId", "expiresAt"], [-7, None]]) == b"categoryId,expiresAt\r\n-7,\r\n"
