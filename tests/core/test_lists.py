"""Reading stock lists: bounds of lines, what a header lacks, keys of rows, and plans that are overtaken."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from petstore.core.errors import OperatorError
from petstore.core.lists.importing import BadRows, plan_and_store
from petstore.core.lists.lines import LINE_BYTES_MAX
from petstore.core.lists.reading import JsonList, open_list
from petstore.core.lists.stock_list import ListContext
from petstore.core.lists.table_lists import TableList
from petstore.core.stock import StockPlan, StockRow
from tests.support.cases import every_case

LONGEST = LINE_BYTES_MAX - 1  # and its line end


def json_rows(text: str, key_name: str | None = None) -> list[Any]:
    """The records of a JSONL list."""
    return list(JsonList(io.BytesIO(text.encode()), key_name).records())


class TestJsonLines:
    """A line is read within its bound, and where it stands is known."""

    def test_a_line_as_long_as_the_bound_is_read(self) -> None:
        """The one after a longer line has its own number."""
        row = '{"name": "Rex", "categoryId": 7%s}'
        whole = row % (" " * (LONGEST - len(row) + 2))
        assert len(whole) == LONGEST
        records = json_rows(f"{whole}\n{whole} \n{whole}")
        assert [(record.line, record.row is not None) for record in records] == [
            (1, True),
            (2, False),
            (3, True),
        ]
        assert records[1].fault == "The line is longer than 65,536 bytes."

    def test_a_mark_is_of_the_first_line_alone(self) -> None:
        """The byte order mark is skipped in the first line alone; in another one it makes the JSON wrong."""
        records = json_rows('\ufeff{"name": "Rex", "categoryId": 7}\n\ufeff{"name": "Rex", "categoryId": 7}')
        assert [record.row is not None for record in records] == [True, False]

    @pytest.mark.parametrize(("key_name", "is_read"), [("id", True), ("sku", False), (None, False)])
    def test_an_id_is_a_key_or_a_fault(self, key_name: str | None, is_read: bool) -> None:
        """The service assigns ids: a member `id` is read only where it is the column of source keys."""
        key = f'"{key_name}": "17", ' if key_name not in (None, "id") else ""
        (record,) = json_rows(f'{{"id": "17", {key}"name": "Rex", "categoryId": 7}}', key_name)
        assert (record.row is not None) is is_read
        assert ("assigned by the service" in record.fault) is not is_read


class TestHeader:
    """The first line of a CSV list."""

    @every_case(
        ("header", "key_name", "expected"),
        [
            ("name", "sku", "clear. No column is called 'sku'. No column is the category (call it"),
            ("animal,PET,category", None, "Which one is the name, 'animal' or 'PET'?"),
            ("name,species,Type", None, "Which one is the category, 'species' or 'Type'?"),
        ],
    )
    def test_a_refusal_names_the_columns(self, header: str, key_name: str | None, expected: str) -> None:
        """A list's refusal names missing or doubled columns and those that are there, and says what to do."""
        with pytest.raises(OperatorError) as refused:
            list(TableList(io.BytesIO(header.encode()), key_name, ListContext()).records())
        assert expected in str(refused.value), refused.value

    def test_ten_columns_at_most(self) -> None:
        """A list without a header may have a hundred columns."""
        header = ",".join(["name", *(f"c{number:02}" for number in range(11))])
        with pytest.raises(OperatorError) as refused:
            list(TableList(io.BytesIO(header.encode()), None, ListContext()).records())
        assert "'c08', …" in str(refused.value)
        assert "'c09'" not in str(refused.value)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("form", [TableList, JsonList])
def test_price_and_note_of_a_row(form: type[TableList] | type[JsonList], line_end: str) -> None:
    """A price is a text in JSON too, so that no program rounds it; a note has lines, of any system."""
    header = "name,categoryId,price,note\n" if form is TableList else ""
    shapes = (
        '{},7,{},"{}"\n' if form is TableList else '{{"name":"{}","categoryId":7,"price":"{}","note":"{}"}}\n'
    )
    if form is JsonList:
        line_end = json.dumps(line_end)[1:-1]
    rows = [("Rex", "9.5", f"Shy.{line_end}Bites."), ("Mia", "1.005", "x" * 2_001)]
    content = io.BytesIO((header + "".join(shapes.format(*row) for row in rows)).encode())
    kind = "csv" if form is TableList else "jsonl"
    good, bad = open_list(kind, content, None, ListContext()).records()
    assert good.row is not None
    assert good.row.values == ("Rex", 7, None, 950, "Shy.\nBites.")
    for fault in ("price: expected an amount such as 12.50", "note: expected 1 to 2000 characters, got 2001"):
        assert fault in bad.fault


class Overtaken:
    """A StockImport that others overtake some times; it counts plans, and which of them were locked."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.locked: list[bool] = []

    async def plan(self, *, locked: bool) -> StockPlan:
        """A plan that adds nothing."""
        self.locked.append(locked)
        return StockPlan(0, 0, 0, 0)

    async def rejected(self) -> AsyncIterator[list[tuple[StockRow, str]]]:
        """No row is rejected."""
        for page in list[list[tuple[StockRow, str]]]():
            yield page

    async def store(self) -> float | None:
        """Return the seconds that it took, or None when overtaken."""
        return None if len(self.locked) <= self.times else 0.25


@pytest.mark.parametrize(("times", "locked"), [(0, [False]), (3, [False, False, False, True])])
async def test_the_last_of_four_plans_is_made_while_nobody_else_writes(
    times: int, locked: list[bool]
) -> None:
    """Others are not stopped while a plan can still be repeated."""
    load: Any = Overtaken(times)
    bad = BadRows(JsonList(io.BytesIO(), None), None)
    _, seconds = await plan_and_store(load, bad, wants=lambda plan: True)
    assert (load.locked, seconds) == (locked, 0.25)
    _, seconds = await plan_and_store(load, bad, wants=lambda plan: False)
    assert seconds is None
