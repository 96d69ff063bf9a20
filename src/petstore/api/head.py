"""The head of a request: the few headers that the service reads, bounded, and who the client is.

Bodies and query strings are requests.py's affair, keys and limits gate.py's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from petstore.addresses import Networks, client_address
from petstore.errors import HeadersTooLarge, InvalidHeader, UriTooLong
from petstore.keys import Grant
from petstore.quota import Decision

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TARGET_MAX_BYTES = 8 * 1024
HEAD_MAX_BYTES = 16 * 1024

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


@lru_cache(maxsize=1_024)
def _is_host(value: bytes) -> bool:
    """Whether a Host header could name this service; clients send the same one again and again."""
    return _HOST.fullmatch(value) is not None


class Request:
    """One request on its way through the pipeline; the gate fills `grant` and `decision`."""

    __slots__ = (
        "credential_sent",
        "decision",
        "grant",
        "headers",
        "method",
        "path",
        "query",
        "receive",
        "repeated",
        "request_id",
        "scope",
        "size",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: bytes = scope["raw_path"]
        self.query: bytes = scope["query_string"]
        self.grant: Grant | None = None
        self.decision: Decision | None = None
        self.credential_sent = False
        self.repeated: frozenset[bytes] | set[bytes] = frozenset()
        self.headers: dict[bytes, bytes] = {}
        self.request_id = b""
        self._read_headers(scope["headers"])

    def _read_headers(self, pairs: list[tuple[bytes, bytes]]) -> None:
        size = 0
        headers = self.headers
        for name, value in pairs:
            size += len(name) + len(value)
            if name in _READ:
                if name not in headers:
                    headers[name] = value
                elif name == b"x-forwarded-for":
                    headers[name] += b"," + value
                else:
                    self.repeated = self.repeated | {name}
        # Four bytes a line for the colon, the space and the line's end.
        self.size = size + 4 * len(pairs) + len(self.path) + len(self.query)

    def is_repeated(self, name: bytes) -> bool:
        """Whether a header that may stand once stands more often."""
        return name in self.repeated

    def inbound_request_id(self) -> bytes | None:
        """The client's own X-Request-Id, if it is a sane one."""
        value = self.headers.get(b"x-request-id")
        if value is None or b"x-request-id" in self.repeated or _REQUEST_ID.fullmatch(value) is None:
            return None
        return value

    def check_head(self) -> None:
        """The first two steps of the precedence: size of the head, then Host.

        Raises UriTooLong, HeadersTooLarge and InvalidHeader.
        """
        if len(self.path) + len(self.query) > TARGET_MAX_BYTES:
            raise UriTooLong(f"The request target is longer than {TARGET_MAX_BYTES} bytes.")
        if self.size > HEAD_MAX_BYTES:
            raise HeadersTooLarge(f"The request head is larger than {HEAD_MAX_BYTES} bytes.")
        host = self.headers.get(b"host")
        if host is None or b"host" in self.repeated or not _is_host(host):
            raise InvalidHeader("Host: send exactly one, with the name and port of this service.")

    def client_address(self, trusted: Networks) -> str:
        """The address that failed authentications are counted under."""
        client = self.scope.get("client")
        forwarded_for = self.headers.get(b"x-forwarded-for", b"").decode("latin-1")
        return client_address(client[0] if client else "unknown", forwarded_for, trusted)
