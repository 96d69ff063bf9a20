"""Integers that people and clients write: `int()` would also take '+1', ' 1', '1_0' and full-width digits."""

from __future__ import annotations

import re

from petstore.core.pets import INT64_MAX, INT64_MIN

_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def read_id(text: str) -> int | None:
    """A canonical positive int64; None for any other text, which identifies nothing."""
    if _ID.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number <= INT64_MAX else None


def read_int64(text: str) -> int | None:
    """A canonical int64; None for any other text."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None
