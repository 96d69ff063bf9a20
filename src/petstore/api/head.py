"""The head of a request: the few headers that the service reads, bounded, and who the client is.

Bodies and query strings are requests.py's affair, keys and limits gate.py's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec

from petstore.addresses import Networks, client_address
from petstore.errors import HeadersTooLarge, InvalidHeader, UriTooLong
from petstore.keys import Grant, digest
from petstore.quota import Decision

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TARGET_MAX_BYTES = 8 * 1024
HEAD_MAX_BYTES = 16 * 1024

_REMEMBERED_MAX = 1_024
_REMEMBERED_BYTES_MAX = 2 * 1024

_READ = frozenset(
    (
        b"host",
        b"authorization",
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"idempotency-key",
        b"x-request-id",
        b"x-forwarded-for",
        b"origin",
        b"access-control-request-method",
    )
)
# RFC 9110, 7.2 and RFC 3986, 3.2.2: a name, an IPv4 address or an IPv6 literal, and a port.
_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class HeaderLines(msgspec.Struct, frozen=True):
    """What a request's header lines say, each read as strictly as it has to be.

    `size` counts their bytes with four more a line for the colon, the space and the line's end. `token` is
    what follows `Bearer` in the one Authorization header, `key_digest` its digest; both None without one.
    """

    size: int
    values: dict[bytes, bytes]
    repeated: frozenset[bytes]
    has_host: bool
    request_id: bytes | None
    token: bytes | None
    key_digest: bytes | None


def parse_lines(pairs: Iterable[tuple[bytes, bytes]]) -> HeaderLines:
    """Read the headers that the service knows; the others count by their size only."""
    size = 0
    values: dict[bytes, bytes] = {}
    repeated = set()
    for name, value in pairs:
        size += len(name) + len(value) + 4
        if name in _READ:
            if name not in values:
                values[name] = value
            elif name == b"x-forwarded-for":
                values[name] += b"," + value
            else:
                repeated.add(name)
    host = values.get(b"host")
    request_id = values.get(b"x-request-id")
    if request_id is not None and (b"x-request-id" in repeated or not _REQUEST_ID.fullmatch(request_id)):
        request_id = None
    authorization = values.get(b"authorization", b"")
    token = None
    if authorization[:7].lower() == b"bearer " and b"authorization" not in repeated:
        token = authorization[7:].strip(b" ")
    return HeaderLines(
        size,
        values,
        frozenset(repeated),
        host is not None and b"host" not in repeated and _HOST.fullmatch(host) is not None,
        request_id,
        token,
        None if token is None else digest(token),
    )


class HeaderMemo:
    """Clients send the same lines again and again: they are parsed, and the key digested, once.

    At most 1,024 sets of lines of at most 2 KiB are remembered, in memory only.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[bytes, bytes], ...], HeaderLines] = {}

    def read(self, pairs: Iterable[tuple[bytes, bytes]]) -> HeaderLines:
        """The same as `parse_lines`."""
        key = tuple(pairs)
        lines = self._known.get(key)
        if lines is None:
            lines = parse_lines(key)
            if lines.size <= _REMEMBERED_BYTES_MAX:
                if len(self._known) >= _REMEMBERED_MAX:
                    self._known.clear()
                self._known[key] = lines
        return lines


class Request:
    """One request on its way through the pipeline; the gate fills `grant` and `decision`."""

    __slots__ = ("decision", "grant", "lines", "method", "path", "query", "receive", "request_id", "scope")

    def __init__(self, scope: Scope, receive: Receive, lines: HeaderLines, request_id: bytes) -> None:
        self.scope = scope
        self.receive = receive
        self.lines = lines
        self.request_id = request_id
        self.method: str = scope["method"]
        self.path: bytes = scope["raw_path"]
        self.query: bytes = scope["query_string"]
        self.grant: Grant | None = None
        self.decision: Decision | None = None

    def header(self, name: bytes) -> bytes | None:
        """The value of a header that the service reads, its first one where it is repeated."""
        return self.lines.values.get(name)

    def is_repeated(self, name: bytes) -> bool:
        """Whether a header that may stand once stands more often."""
        return name in self.lines.repeated

    def check_head(self) -> None:
        """The first two steps of the precedence: size of the head, then Host.

        Raises UriTooLong, HeadersTooLarge and InvalidHeader.
        """
        target_bytes = len(self.path) + len(self.query)
        if target_bytes > TARGET_MAX_BYTES:
            raise UriTooLong(f"The request target is longer than {TARGET_MAX_BYTES} bytes.")
        if self.lines.size + target_bytes > HEAD_MAX_BYTES:
            raise HeadersTooLarge(f"The request head is larger than {HEAD_MAX_BYTES} bytes.")
        if not self.lines.has_host:
            raise InvalidHeader("Host: send exactly one, with the name and port of this service.")

    def client_address(self, trusted: Networks) -> str:
        """The address that failed authentications are counted under."""
        client = self.scope.get("client")
        forwarded_for = (self.header(b"x-forwarded-for") or b"").decode("latin-1")
        return client_address(client[0] if client else "unknown", forwarded_for, trusted)
