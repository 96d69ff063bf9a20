"""Addresses of pages below the console, with filters and places in their query."""

from __future__ import annotations

from collections.abc import Mapping

from petstore.console.visit import INCOMPLETE_ADDRESS
from petstore.core.errors import InvalidParameter
from petstore.core.values import read_id


def place_in(query: Mapping[str, str], name: str, first: int = 0) -> int:
    """The identifier that a page starts after; `first` for the first page. Raises InvalidParameter."""
    text = query.get(name, "")
    place = read_id(text) if text else first
    if place is None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    return place
