"""Lists in pages: their query parameters, the cursor and the header `Link`.

A cursor is the last identifier of a page, bound to the filter of the list: 16 characters of URL-safe base64,
made of 8 bytes of identifier and 4 bytes of CRC-32 against mistakes. It is not secret: `after` takes any
identifier. START is the beginning of every list, for the contract's examples: it goes with `after` too.
"""

from __future__ import annotations

import re
import struct
import zlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from petstore.api.pipeline.request import Parameters, unknown_parameter
from petstore.core.errors import InvalidParameter
from petstore.core.preconditions import encode, tag_of
from petstore.core.values import (
    IDS_MAX,
    INT64_MAX,
    INT64_MIN,
    PAGE_LIMIT_DEFAULT,
    PAGE_LIMIT_MAX,
    read_id,
    read_int64,
)

_T = TypeVar("_T")

# The number for each valid text: a look-up instead of parsing.
_LIMITS = {str(limit): limit for limit in range(1, PAGE_LIMIT_MAX + 1)}
_LIMIT_EXPECTED = f"an integer from 1 to {PAGE_LIMIT_MAX}"

_FORM = re.compile(r"[A-Za-z0-9_-]{16}", re.ASCII)
_LAYOUT = struct.Struct(">qI")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
START = "A" * 16


class ListRequest(NamedTuple, Generic[_T]):
    """The parameters of every list; `given` has the text of each that may stand once, by name.

    `ids`: ascending, each once; None without such a filter. `status`: None without such a filter.
    """

    given: dict[str, str]
    ids: tuple[int, ...] | None
    limit: int
    status: _T | None


def read_list(parameters: Parameters, names: tuple[str, ...], statuses: Mapping[str, _T]) -> ListRequest[_T]:
    """What a list is asked for. Raises InvalidParameter for a parameter that is not among `names`, else for
    one that stands twice, else for the first bad value of `id`, `limit` and `status`.
    """
    given, listed = read_given(parameters, names, "id")
    ids = _read_ids(listed) if listed else None
    return ListRequest(given, ids, read_limit(given), read_one_of(statuses, given, "status"))


def read_given(
    parameters: Parameters, names: tuple[str, ...], repeatable: str
) -> tuple[dict[str, str], list[str]]:
    """The text of each parameter that may stand once, by name, and those of the one that may stand often,
    which axios writes as `id[]`.

    Raises InvalidParameter for a parameter that is not among `names`, else for one that stands twice.
    """
    given: dict[str, str] = {}
    listed: list[str] = []
    repeated = ""
    spellings = (repeatable, f"{repeatable}[]") if repeatable else ()
    for name, _, value in parameters:
        if name in spellings:
            listed.append(value)
        elif name not in names:
            raise unknown_parameter(name, names)
        elif name in given:
            repeated = name
        else:
            given[name] = value
    if repeated:
        raise InvalidParameter(f"{repeated}: sent more than once; send it once.")
    return given, listed


def read_limit(given: Mapping[str, str]) -> int:
    """The length of a page."""
    return read_one_of(_LIMITS, given, "limit", _LIMIT_EXPECTED) or PAGE_LIMIT_DEFAULT


def read_one_of(
    values: Mapping[str, _T], given: Mapping[str, str], name: str, expected: str = ""
) -> _T | None:
    """The value that the table has for a parameter's exact text; None when it was not sent.

    `expected` describes the values; without it the message lists them.
    """
    text = given.get(name)
    if text is None:
        return None
    value = values.get(text)
    if value is None:
        raise InvalidParameter(f"{name}: expected {expected or 'one of ' + ', '.join(values)}.")
    return value


def _read_ids(listed: list[str]) -> tuple[int, ...]:
    """`id=1,2&id=3` is `id=1&id=2&id=3`: some programs write arrays with commas."""
    ids = set()
    texts = ",".join(listed).split(",")
    for text in texts:
        number = read_id(text)
        if number is None:
            raise InvalidParameter(f"id: expected an integer from 1 to {INT64_MAX}.")
        ids.add(number)
    if len(texts) > IDS_MAX:
        raise InvalidParameter(f"id: at most {IDS_MAX} values, got {len(texts)}.")
    return tuple(sorted(ids))


def read_integer(given: Mapping[str, str], name: str) -> int | None:
    """A canonical int64; None when it was not sent."""
    text = given.get(name)
    if text is None:
        return None
    number = read_int64(text)
    if number is None:
        raise InvalidParameter(f"{name}: expected an integer from {INT64_MIN} to {INT64_MAX}.")
    return number


def bind(filters: str) -> int:
    """A checksum that ties a cursor to one list and its filters; `filters` is any canonical text of them."""
    return zlib.crc32(filters.encode("ascii"))


def write_cursor(after_id: int, bound: int) -> str:
    """The cursor of the page after `after_id` in a list, which is given as what `bind` made of it."""
    packed = _LAYOUT.pack(after_id, zlib.crc32(b"%d" % after_id, bound))
    return b2a_base64(packed, newline=False).translate(_URL_SAFE).decode("ascii")


def split_cursor(query: bytes) -> tuple[bytes, str | None]:
    """A query without its one cursor, and that. One with `after` or escapes stays whole, with None."""
    before, found, after = query.rpartition(b"cursor=")
    cursor, _, tail = after.partition(b"&")
    rest = before + tail
    if not found or before[-1:] not in b"&" or b"cursor" in rest or b"after" in rest or b"%" in query:
        return query, None
    return rest, cursor.decode("latin-1")


def read_position(given: Mapping[str, str], bound: int) -> int:
    """The identifier before a page, by `cursor` or `after`; 0 for the first one. Raises InvalidParameter."""
    cursor, after = given.get("cursor", START), given.get("after")
    if after is None:
        return read_cursor(cursor, bound)
    if cursor != START:
        raise InvalidParameter("cursor: not together with after; send one of them.")
    number = read_id(after)
    if number is None:
        raise InvalidParameter(f"after: expected an identifier, an integer from 1 to {INT64_MAX}.")
    return number


def read_cursor(cursor: str, bound: int) -> int:
    """The identifier in a cursor, 0 for START. Raises InvalidParameter unless it was made for this list."""
    if _FORM.fullmatch(cursor) is not None:
        after_id: int
        after_id, checksum = _LAYOUT.unpack(a2b_base64(cursor.replace("-", "+").replace("_", "/")))
        if after_id > 0 and checksum == zlib.crc32(b"%d" % after_id, bound):
            return after_id
    if cursor == START:
        return 0
    raise InvalidParameter(
        "cursor: not one that was given for this filter; follow the Link header, or start without a cursor."
    )


def tag_of_page(ids: tuple[int, ...] | None, resources: Sequence[object], body: bytes, links: bytes) -> bytes:
    """The tag of a list, which covers its Link: a full last page keeps its body when one more comes. A list
    that was asked for by one `id` has the tag of the resource in it, which If-Match takes.
    """
    if ids is not None and len(ids) == 1 == len(resources):
        return tag_of(encode(resources[0]))
    return tag_of(body + links)


class PageLinks:
    """The value of `Link` (RFC 8288) on each page of one list, made once but for the cursor.

    `path` is the list's own, `more` are the filters beside status and ids as they stand in a query, and
    `bound` is what `bind` made of all filters.
    """

    def __init__(
        self, path: str, limit: int, status: str | None, ids: tuple[int, ...] | None, more: str, bound: int
    ) -> None:
        target = f"{path}?limit={limit}"
        if status is not None:
            target += f"&status={status}"
        target += "".join(f"&id={each}" for each in ids or ()) + more
        self.bound = bound
        self._first = f'<{target}>; rel="first"'.encode("ascii")
        self._before = f"<{target}&cursor=".encode("ascii")
        self._after = b'>; rel="next", ' + self._first

    def after(self, last_id: int | None) -> bytes:
        """`first`, and `next` unless the page is the last (None)."""
        if last_id is None:
            return self._first
        return self._before + write_cursor(last_id, self.bound).encode("ascii") + self._after
