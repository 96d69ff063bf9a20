"""The head of a request: the few headers that the service reads, and its bounds.

Bodies: body.py. Keys and limits: gate.py.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol
from urllib.parse import parse_qsl

import msgspec

from petstore.core.client_address import Networks, client_address
from petstore.core.digests import digest
from petstore.core.errors import HeadersTooLarge, InvalidHeader, InvalidParameter, NotFound, UriTooLong
from petstore.core.idempotency import IdempotencyKey
from petstore.core.keys import Caller
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.preconditions import Tags, read_tags
from petstore.core.printable import shortened
from petstore.core.values import read_id

Parameters = list[tuple[str, str, str]]

_HEAD_MAX_BYTES = HeadersTooLarge.MAX_BYTES

# RFC 9110, 7.2 and RFC 3986, 3.2.2: a name, an IPv4 address or an IPv6 literal, and a port.
_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
# None that holds an API key by mistake: the id is logged.
_REQUEST_ID = re.compile(rb"(?!.*pets_(?:live|test)_)[A-Za-z0-9._:/+=@-]{1,128}")
_IDEMPOTENCY_KEY = re.compile(rb"[\x21-\x7e]{1,255}")

_SHOWN_MAX = 64  # characters of an unknown parameter's name in a message

_ONCE: frozenset[bytes] = frozenset()
_LISTS = frozenset({b"x-forwarded-for", b"if-match", b"if-none-match", b"accept-encoding"})


@lru_cache(maxsize=1_024)
def _is_host(value: bytes) -> bool:
    """Whether a Host header is well-formed. Cached, because clients repeat it."""
    return _HOST.fullmatch(value) is not None


class Head(Protocol):
    """Header lines, names in lower case, of at most `most_bytes`; `made` is kept for a request that repeats
    them."""

    headers: list[tuple[bytes, bytes]]
    most_bytes: int
    made: Any


class Exchange(Protocol):
    """A request as the HTTP server has read it, with the way to answer it.

    `path` and `query` are as they were sent. `is_complete`: the whole body has arrived. `is_answered`: the
    answer is sent too. `task` makes the answer, if there is one.
    """

    method: str
    path: bytes
    query: bytes
    client: tuple[str, int]
    is_complete: bool
    is_answered: bool
    task: asyncio.Task[None] | None

    @property
    def head(self) -> Head: ...

    def take_body(self) -> bytes:
        """All of the body that has arrived since the last call."""

    async def wait_for_body(self) -> None:
        """Wait until more of the body has arrived. Raises EOFError when it can't be whole any more."""

    async def wait_for_disconnect(self) -> None:
        """Wait until the client has closed the connection, or its side of it."""

    def answer(self, status: int, lines: bytes, body: bytes | None) -> None:
        """Send the whole answer, once. `lines` are its header lines, without the lines of framing."""

    def abort(self) -> None:
        """End the connection without an answer."""


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """What is read from header lines alone, for all requests that repeat them.

    `headers` has the first line of each name, `repeated` the names that occur more than once. `size` is the
    lines' in bytes, with four more for each: its colon, space and end; 0 where it is far below the
    bound. `request_id` is the client's own if it is well-formed. `token` is from the one Authorization
    header; None without one or with another scheme. `key_digest` is the token's.
    """

    headers: dict[bytes, bytes]
    repeated: frozenset[bytes]
    size: int
    has_host: bool
    request_id: bytes
    token: bytes | None
    key_digest: bytes


class Request(msgspec.Struct, gc=False):
    """One request. `request_id` is the client's, or else the pipeline's; `began` is on the monotonic clock,
    `waited` are seconds without work. The gate sets `caller`, of the key if that exists, and `decision`, by
    which the request is admitted or refused; `cause` is gate.Refused's.
    """

    exchange: Exchange
    method: str
    path: bytes
    query: bytes
    head: RequestHead
    headers: dict[bytes, bytes]
    request_id: bytes
    began: float = 0.0
    waited: float = 0.0
    caller: Caller | None = None
    decision: Decision | AddressDecision | None = None
    cause: str | None = None

    def idempotency_key(self, account_id: int) -> IdempotencyKey | None:
        """The account's Idempotency-Key, bare or in quotes. Raises InvalidHeader."""
        value = self.headers.get(b"idempotency-key")
        if value is None:
            return None
        if len(value) > 1 and value[:1] == b'"' == value[-1:]:
            value = value[1:-1]
        if b"idempotency-key" in self.head.repeated or _IDEMPOTENCY_KEY.fullmatch(value) is None:
            raise InvalidHeader("Idempotency-Key: send one, of 1 to 255 visible ASCII characters.")
        return IdempotencyKey(account_id, value.decode("ascii"))

    def match(self) -> Tags | None:
        """The tags of If-Match; None without it. Raises InvalidHeader: a condition is never lost."""
        value = self.headers.get(b"if-match")
        if value is None:
            return None
        tags = read_tags(value)
        if tags is None:
            raise InvalidHeader("If-Match: send the ETag of an answer as it stands, with its quotes, or *.")
        return tags

    def path_id(self, index: int = -1) -> int | None:
        """The identifier in a segment of the path, the last or the one after `index` slashes; None unless it
        is canonical."""
        return read_id(self.path.split(b"/")[index].decode("latin-1"))

    def required_id(self, noun: str, index: int = -1) -> int:
        """The identifier in that segment, as `path_id` reads it. Raises NotFound where there is none."""
        number = self.path_id(index)
        if number is None:
            raise NotFound(f"There is no such {noun}.")
        return number

    def refuse_parameters(self) -> None:
        """Check that there is no query parameter. Raises InvalidParameter."""
        for name, _, _ in parameters_of(self.query):
            raise unknown_parameter(name, ())

    def check_head(self) -> None:
        """The first two steps of the precedence: size of the head, then Host.

        Raises UriTooLong, HeadersTooLarge and InvalidHeader.
        """
        target_size = len(self.path) + len(self.query)
        if target_size > UriTooLong.MAX_BYTES:
            raise UriTooLong()
        if target_size + self.head.size > _HEAD_MAX_BYTES:
            raise HeadersTooLarge()
        if not self.head.has_host:
            raise InvalidHeader("Host: send exactly one, with the name and port of this service.")

    def client_address(self, trusted: Networks) -> str:
        """The address that failed authentications are counted under."""
        forwarded_for = self.headers.get(b"x-forwarded-for", b"").decode("latin-1")
        return client_address(self.exchange.client[0], forwarded_for, trusted)


def parameters_of(query: bytes) -> Parameters:
    """(name, separator, value) of each parameter in a query, in order.

    Most queries have nothing to decode, and splitting is five times faster than parse_qsl.
    """
    text = query.decode("latin-1")
    if "%" in text or "+" in text:
        return [(name, "=", value) for name, value in parse_qsl(text, keep_blank_values=True)]
    return [part.partition("=") for part in text.split("&") if part]


def unknown_parameter(name: str, names: tuple[str, ...]) -> InvalidParameter:
    """The error for a query parameter that an operation does not have; `names` are those that it has."""
    shown = shortened(name, _SHOWN_MAX)
    taken = f"takes {', '.join(names)}" if names else "takes none"
    return InvalidParameter(
        f"{shown or 'A value without a name'}: not a parameter of this operation; it {taken}."
    )


def read_request(exchange: Exchange) -> Request:
    """The request of an exchange."""
    head = exchange.head.made
    if head is None:
        head = exchange.head.made = _read_head(exchange.head)
    return Request(
        exchange, exchange.method, exchange.path, exchange.query, head, head.headers, head.request_id
    )


def _read_head(head: Head) -> RequestHead:
    pairs, repeated, size = head.headers, _ONCE, 0
    values = dict(pairs)
    if len(values) != len(pairs):
        values, repeated = _read_repeated(pairs)
    if head.most_bytes > _HEAD_MAX_BYTES // 2:  # else it would measure a microsecond for nothing
        size = len(b"".join(chain.from_iterable(pairs))) + 4 * len(pairs)
    request_id = values.get(b"x-request-id", b"")
    if request_id and (b"x-request-id" in repeated or _REQUEST_ID.fullmatch(request_id) is None):
        request_id = b""
    if size > _HEAD_MAX_BYTES:  # it is refused; neither is its host kept nor its token hashed
        return RequestHead(values, repeated, size, False, request_id, None, b"")
    host = values.get(b"host")
    has_host = host is not None and _is_host(host) and b"host" not in repeated
    value = values.get(b"authorization", b"")
    if value[:7].lower() != b"bearer " or b"authorization" in repeated:
        return RequestHead(values, repeated, size, has_host, request_id, None, b"")
    token = value[7:].strip(b" ")
    return RequestHead(values, repeated, size, has_host, request_id, token, digest(token))


def _read_repeated(pairs: list[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], frozenset[bytes]]:
    """Header lines with repeated names: the first line counts, those of lists are joined (RFC 9110, 5.3)."""
    values: dict[bytes, bytes] = {}
    repeated = set()
    for name, value in pairs:
        if name not in values:
            values[name] = value
        elif name in _LISTS:
            values[name] += b"," + value
        else:
            repeated.add(name)
    return values, frozenset(repeated)
