"""The rows of a stock list: what every reader of lists makes, and what it may know of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from petstore.core.categories import Category
from petstore.core.fields import Field, Value
from petstore.core.lists.columns import Remembered
from petstore.core.pets import FIELDS
from petstore.core.stock import StockRow
from petstore.core.uploads import Reading


class ListContext(NamedTuple):
    """What the store knows for reading a list: its named categories, and the columns that were chosen."""

    categories: Sequence[Category] = ()
    columns: Remembered = MappingProxyType({})


class Record(NamedTuple):
    """A row of a file: `row` when it keeps every rule, else its `fault` and its line, `raw`."""

    line: int
    row: StockRow | None
    fault: str = ""
    raw: bytes = b""


class StockList(Protocol):
    """An open stock list. Raises OperatorError for a file that can't be read to its end. `key_name` is the
    column of its source keys, None without one."""

    key_name: str | None

    def records(self) -> Iterator[Record]:
        """Every row, in the order of the file."""

    def reject(self, line: int, fault: str, raw: bytes) -> bytes:
        """A bad row for the file of rejected rows."""

    def raw(self, row: StockRow) -> bytes:
        """The line of a row that kept every rule of the file."""

    def heading(self) -> bytes:
        """The beginning of the file of rejected rows."""
        return b""

    def reading(self) -> Reading:
        """How the list was read. Ask after the records."""
        return Reading()

    def meaning(self) -> str:
        """A text of what the store knew when the rows were read: another one may mean other rows."""
        return ""


def row_of(line: int, read: Any) -> StockRow:
    """A row of what the schema has read."""
    values = tuple([_plain(field, getattr(read, field.name)) for field in FIELDS])
    return StockRow(line, getattr(read, "source_key", None), values)


def _plain(field: Field, value: Any) -> Value:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return field.read(value)
    return None if value is msgspec.UNSET else value


def members_of(row: StockRow, key_name: str | None) -> dict[str, object]:
    """The members of a row that are there, with its source key unless that has no name."""
    named = zip(FIELDS, row.values, strict=True)
    members: dict[str, object] = {
        field.member: field.write(value) for field, value in named if value is not None
    }
    if key_name is not None:
        members[key_name] = row.source_key
    return members
