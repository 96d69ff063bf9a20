"""What callers give: identifiers, tags and keys, checked before anything is sent."""

from __future__ import annotations

import operator
import re
import uuid
from collections.abc import Iterable
from typing import Any

Query = tuple[tuple[str, str], ...]
_ETAG = re.compile(r'\*|(W/)?"[!#-~]*"')
_EVENT_ID = re.compile("evt_[0-9A-Za-z_-]{1,100}")
_IDEMPOTENCY_KEY = re.compile("[!-~]{1,255}")


def query(filters: Iterable[tuple[str, object]], ids: Iterable[int] = ()) -> Query:
    """Parameters: those of the filters that are not None, then the identifiers."""
    given = [(name, str(value)) for name, value in filters if value is not None]
    return (*given, *(("id", str(identifier(each))) for each in ids))


def identifier(value: int) -> int:
    """An identifier. Text might name another path, such as "../store/orders/5"; True is an int to Python."""
    if isinstance(value, bool):
        raise TypeError("An identifier is an integer, not a boolean.")
    return operator.index(value)


def event_id(value: str) -> str:
    """An event's id; raises ValueError for another text, which might name another path."""
    if not _EVENT_ID.fullmatch(value):
        raise ValueError("An event's id is the `id` of an Event, such as evt_7f_42.")
    return value


def members(**given: object) -> dict[str, Any]:
    """A document of what is not None."""
    return {name: value for name, value in given.items() if value is not None}


def some_members(**given: object) -> dict[str, Any]:
    """As `members`; raises ValueError for an empty document."""
    document = members(**given)
    if not document:
        raise ValueError(f"Give at least one of {', '.join(given)}.")
    return document


def etag(given: str | None) -> str | None:
    """A tag for If-Match; raises ValueError."""
    if given is None or _ETAG.fullmatch(given):
        return given
    raise ValueError(
        "if_match is the etag of what get, create, place or update returned, or *. Lists have none."
    )


def idempotency_key(given: str | None) -> str:
    """The given key, else a new one; raises ValueError."""
    if given is None:
        return str(uuid.uuid4())
    if not _IDEMPOTENCY_KEY.fullmatch(given):
        raise ValueError("An idempotency key is 1 to 255 visible ASCII characters.")
    return given
