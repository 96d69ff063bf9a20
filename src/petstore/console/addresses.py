"""Addresses of pages below the console, with what was asked for in their query."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

# Of an address that no page has made.
CUT_ADDRESS = "The address of this page is incomplete; begin at the first page."


def address(page: str, asked: Mapping[str, object]) -> str:
    """Such as `orders?state=placed`, for Visit.to. What is empty or 0 is left out."""
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"{page}?{query}" if query else page
