"""Rows of stock lists."""

from __future__ import annotations

from petstore.core.fields import Value
from petstore.core.pets import FIELDS
from petstore.core.stock import StockRow


def stock_row(line: int, key: str | None, *values: Value) -> StockRow:
    """A row whose list has columns for the first members alone."""
    return StockRow(line, key, values + (None,) * (len(FIELDS) - len(values)))
