"""The reader of a connection: it makes requests of its bytes (RFC 9112)."""

from __future__ import annotations

import sys
from collections import deque

from httptools import HttpParserError, HttpParserInvalidMethodError, HttpParserUpgrade, HttpRequestParser

from petstore.http.exchange import Exchange, Wire
from petstore.http.head_cache import HeadCache
from petstore.http.heads import METHOD, Head, Headers, framing_of, in_origin_form

# Larger than the application's bounds, so that its own answer comes first.
_UNFINISHED_MAX_BYTES = 64 * 1024

_VERSIONS = {"1.1": True, "1.0": False}


class Reader:
    """Reads what a client sends, and implements httptools' callbacks.

    `requests` are those that have arrived and not begun, `heads` counts all. `arriving`: the one whose body
    is not complete. `unfinished`: bytes since a request or a piece of a body was complete.
    """

    def __init__(self, wire: Wire, client: tuple[str, int], head_cache: HeadCache) -> None:
        self.requests: deque[Exchange] = deque()
        self.heads = 0
        self.arriving: Exchange | None = None
        self.unfinished = 0
        self._wire = wire
        self._client = client
        self._parser = HttpRequestParser(self)
        self._head_cache = head_cache
        self._method = ""  # the arriving head's, if llhttp does not know it
        self._target = b""
        self._headers: Headers = []
        self._most_bytes = 0  # at least the size of the arriving head
        self._is_between = True  # the last request is complete, and nothing of the next one has arrived
        self._has_ended = False  # the last request of the connection has arrived, or what is not a request

    def read(self, data: bytes) -> int:
        """The status that refuses it, if it is not a request or a body; else 0."""
        is_start = self._is_between and not self.unfinished and not self._has_ended
        again = self._head_cache.find(data) if is_start else None
        if again is not None:
            self.heads += 1
            self.requests.append(Exchange(self._wire, "GET", *again, self._client, is_complete=True))
            return 0
        heads, left = self.heads, data
        self.unfinished += len(data)
        self._most_bytes = len(data) if self._is_between else sys.maxsize
        try:
            while left:
                left = self._feed(left)
        except HttpParserError:
            self._has_ended = True
            return 400
        if is_start and self._is_between and not self._has_ended and self.heads == heads + 1:
            self._head_cache.note(data, self.requests[-1])
        if self.unfinished > _UNFINISHED_MAX_BYTES:
            return 414 if len(self._target) > _UNFINISHED_MAX_BYTES // 2 else 431
        return 0

    def close(self) -> None:
        """Nothing is read any more."""
        self.arriving = None
        del self._parser, self._wire  # they refer to this: cycles are seldom collected

    # httptools' callbacks: it turns their errors into an HttpParserError.

    def on_message_begin(self) -> None:
        self._is_between = False

    def on_url(self, piece: bytes) -> None:
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.arriving is None:  # else a trailer, which no operation reads
            self._headers.append((name.lower(), value.rstrip(b" \t")))  # RFC 9112, 5.1

    def on_headers_complete(self) -> None:
        if self.arriving is not None:  # the parser reads the body of an ignored upgrade
            return
        parser, headers, target = self._parser, self._headers, self._target
        is_current_version = _VERSIONS[parser.get_http_version()]
        if target[:1] != b"/":
            target, headers = in_origin_form(target, headers)
        path, _, query = target.partition(b"?")
        self._has_ended = not (is_current_version and parser.should_keep_alive())
        self.arriving = Exchange(
            self._wire,
            self._method or parser.get_method().decode("ascii"),
            path,
            query,
            Head(headers, self._most_bytes),
            self._client,
            not self._has_ended,
            is_current_version,
        )
        self._method, self._target, self._headers = "", b"", []
        self.heads += 1
        self.unfinished = 0
        self.requests.append(self.arriving)

    def on_body(self, piece: bytes) -> None:
        self.unfinished = 0
        if self.arriving is not None:
            self.arriving.feed(piece)

    def on_message_complete(self) -> None:
        if self.arriving is not None:
            self.arriving.complete()
            self.arriving, self.unfinished, self._is_between = None, 0, True

    def _feed(self, data: bytes) -> bytes:
        """Returns what is left to parse. Raises HttpParserError."""
        heads, is_start = self.heads, self._is_between
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._ignore_upgrade()
            return data[upgrade.args[0] :]
        except HttpParserInvalidMethodError:
            method = METHOD.match(data) if is_start and heads == self.heads else None
            if method is None:  # bytes of a body, or half a method, are before it
                raise
            self._method = method[1].decode("ascii")
            self._parser = HttpRequestParser(self)
            return b"GET " + data[method.end() :]
        return b""

    def _ignore_upgrade(self) -> None:
        """Read a request to upgrade like any other (RFC 9110, 7.8): only a new parser reads its body."""
        framing = framing_of(self.requests[-1].head.headers)
        if framing:
            self.arriving = self.requests[-1]
            self.arriving.is_complete = False
            self._parser = HttpRequestParser(self)
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
            self._target = b""
