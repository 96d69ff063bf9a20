"""What callers give: identifiers, tags and keys, checked before anything is sent."""

from __future__ import annotations

import operator
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from petstore_client.errors import ConfigurationError

Query = tuple[tuple[str, str], ...]
_ETAG = re.compile(r'\*|(W/)?"[!#-~]*"')
_EVENT_ID = re.compile("evt_[0-9A-Za-z_-]{1,100}")
_IDEMPOTENCY_KEY = re.compile("[!-~]{1,255}")
_REQUEST_ID = re.compile("(?!.*pets_(live|test)_)[A-Za-z0-9._:/+=@-]{1,128}")  # others the service replaces
_HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile("[!-~]([ -~]*[!-~])?")
# The client sends these itself, or could not read the answer.
_OWN_HEADERS = {
    *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "expect"),
    *("host", "idempotency-key", "if-match", "if-none-match", "transfer-encoding", "user-agent"),
    *("range", "x-request-id"),
}


class NotGiven(Enum):
    """The default of an argument whose None is sent."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return self.value


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


def query(filters: Iterable[tuple[str, object]], ids: Iterable[int] = ()) -> Query:
    """Parameters: the filters that are not None, then the identifiers."""
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


def moment(given: datetime | NotGiven | None) -> str | NotGiven | None:
    """A time in UTC: an offset of RFC 3339 has no seconds. Raises ValueError without a time zone."""
    if given is None or given is NOT_GIVEN:
        return given
    if given.utcoffset() is None:
        raise ValueError("ship_date needs a time zone, such as datetime.UTC.")
    try:
        return given.astimezone(UTC).isoformat(timespec="milliseconds")
    except OverflowError:
        raise ValueError("ship_date is not in the years 1 to 9999 of UTC.") from None


def members(**given: object) -> dict[str, Any]:
    """A document of what is not None."""
    return {name: value for name, value in given.items() if value is not None}


def some_members(nullable: Mapping[str, object] | None = None, /, **given: object) -> dict[str, Any]:
    """The members as `members` has them, with what of `nullable` is given; raises ValueError for an empty
    document."""
    nullable = nullable or {}
    document = members(**given) | {name: value for name, value in nullable.items() if value is not NOT_GIVEN}
    if not document:
        arguments = re.sub("(?=[A-Z])", "_", ", ".join((*given, *nullable))).lower()
        raise ValueError(f"Give at least one of {arguments}.")
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


def extra_headers(given: Mapping[str, str], request_id: str | None) -> dict[str, str]:
    """Headers beside the client's own, by their names in small letters; raises ConfigurationError."""
    headers = {name.lower(): value for name, value in given.items()}
    for name, value in headers.items():
        if name in _OWN_HEADERS:
            raise ConfigurationError(f"The client sends {name} itself. For X-Request-Id give request_id.")
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigurationError(f"The header {name!r} has a name or value that is not visible ASCII.")
    if request_id is not None:
        if not _REQUEST_ID.fullmatch(request_id):
            raise ConfigurationError("A request id is 1 to 128 letters, digits and ._:/+=@-, without a key.")
        headers["x-request-id"] = request_id
    return headers
