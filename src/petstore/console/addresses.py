"""Addresses of pages below the console, with filters and places in their query."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from petstore.core.errors import InvalidParameter
from petstore.core.values import read_id

# For a query that no page of the console links to.
INCOMPLETE_ADDRESS = "The address of this page is incomplete; begin at the first page."


def address(page: str, asked: Mapping[str, object]) -> str:
    """Such as `orders?state=placed`, for Visit.href. Leaves out empty values and 0."""
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"{page}?{query}" if query else page


def place_in(query: Mapping[str, str], name: str, first: int = 0) -> int:
    """The identifier that a page starts after; `first` for the first page. Raises InvalidParameter."""
    text = query.get(name, "")
    place = read_id(text) if text else first
    if place is None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    return place
