"""Strict readers of the target: identifiers and query parameters.

Each raises InvalidParameter, with a message that names the parameter and the values that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

from petstore.api.pipeline.cursor import read as read_cursor
from petstore.core.errors import InvalidParameter
from petstore.core.pets import IDS_MAX, INT64_MAX, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, STATUSES, PageQuery

# int() also takes '+1', ' 1', '1_0' and full-width digits.
_CANONICAL_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
# Every text that the parameter takes, so that nothing has to be parsed.
_LIMITS = {str(limit): limit for limit in range(1, PAGE_LIMIT_MAX + 1)}
_LIMIT_EXPECTED = f"an integer from 1 to {PAGE_LIMIT_MAX}"
_STATUS_EXPECTED = f"one of {', '.join(STATUSES)}"
_GIVEN_ONCE = frozenset({"limit", "status", "cursor"})
_T = TypeVar("_T")


def read_pet_id(text: str) -> int | None:
    """A canonical positive int64; None for any other text, which no animal can have."""
    if _CANONICAL_ID.fullmatch(text) is None:
        return None
    pet_id = int(text)
    return pet_id if pet_id <= INT64_MAX else None


def read_page_query(query: bytes) -> PageQuery:
    """The parameters of GET /pets. Unknown ones are ignored; raises InvalidParameter."""
    ids: list[int] = []
    given: dict[str, str] = {}
    for name, _, value in _parameters(query.decode("latin-1")):
        if name == "id":
            pet_id = read_pet_id(value)
            if pet_id is None:
                raise InvalidParameter(f"id: expected an integer from 1 to {INT64_MAX}.")
            ids.append(pet_id)
        elif name in _GIVEN_ONCE:
            if name in given:
                raise InvalidParameter(f"{name}: sent more than once; send it once.")
            given[name] = value
    if len(ids) > IDS_MAX:
        raise InvalidParameter(f"id: at most {IDS_MAX} values, got {len(ids)}.")
    limit = _one_of(_LIMITS, given, "limit", _LIMIT_EXPECTED) or PAGE_LIMIT_DEFAULT
    status = _one_of(STATUSES, given, "status", _STATUS_EXPECTED)
    wanted = tuple(sorted(set(ids))) if ids else None
    cursor = given.get("cursor")
    return PageQuery(limit, status, wanted, 0 if cursor is None else read_cursor(cursor, status, wanted))


def _parameters(query: str) -> list[tuple[str, str, str]]:
    """(name, separator, value) of each parameter, in order.

    Most queries have nothing to decode, and splitting is five times faster than parse_qsl.
    """
    if "%" in query or "+" in query:
        return [(name, "=", value) for name, value in parse_qsl(query, keep_blank_values=True)]
    return [part.partition("=") for part in query.split("&") if part]


def _one_of(values: Mapping[str, _T], given: Mapping[str, str], name: str, expected: str) -> _T | None:
    """The value that the table has for a parameter's exact text; None when it was not sent."""
    text = given.get(name)
    if text is None:
        return None
    value = values.get(text)
    if value is None:
        raise InvalidParameter(f"{name}: expected {expected}.")
    return value
