"""One request and its answer, as an application meets them."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Protocol

import msgspec

from petstore.http.heads import Head, value_of

DISCARDED_BYTES_MAX = 64 * 1024
BODILESS = frozenset({204, 304})
_LENGTH_DIGITS_MAX = 20  # Python reads no number of 5,000 digits
_REQUEST_TIMEOUT = 408

STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_CLOSE = b"connection: close\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


class Wire(Protocol):
    """What an exchange needs of its connection."""

    @property
    def is_draining(self) -> bool:
        """Every answer is the last of its connection."""

    def write(self, data: bytes) -> None: ...

    def resume_reading(self) -> None:
        """The application has taken the bytes that waited for it."""

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written, or has gone."""

    def finish(self, *, closes: bool) -> None:
        """The answer is written. `closes`: it was the connection's last."""

    def abort(self) -> None:
        """End the connection at once."""


class Exchange(msgspec.Struct, eq=False):
    """A request whose head has arrived. An application answers it once: by `answer`, or by `begin`, `write`
    and `end`. Not for use by threads.

    `path` and `query` are as they were sent. `keeps_alive`: the client may send another request;
    `is_complete`: the whole body has arrived; `task` is the application's, kept from the collector.
    """

    _connection: Wire
    method: str
    path: bytes
    query: bytes
    head: Head
    client: tuple[str, int]
    keeps_alive: bool = True
    _takes_chunks: bool = True
    is_complete: bool = False
    is_answered: bool = False
    task: asyncio.Task[None] | None = None
    waiting_bytes: int = 0  # what the application has not taken of the body yet
    _pieces: list[bytes] = []
    _arrival: asyncio.Future[None] | None = None
    _gone: asyncio.Future[None] | None = None
    _has_left: bool = False
    _is_lost: bool = False
    _asked: bool = False  # for the body, by 100 Continue
    _is_chunked: bool = False

    # For the application.

    def take_body(self) -> bytes:
        """All of the body that has arrived since the last call."""
        if not self._pieces:
            return b""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        self.waiting_bytes = 0
        self._connection.resume_reading()
        return taken

    async def wait_for_body(self) -> None:
        """Wait until more of the body has arrived or it is complete. Raises EOFError if it never is."""
        if not (self.is_complete or self._pieces or self._is_lost):
            expects = value_of(self.head.headers, b"expect").lower() == b"100-continue"
            if expects and not self._asked and self._takes_chunks:  # RFC 9110, 10.1.1: never HTTP/1.0
                self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._asked = True
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        if self._is_lost and not self._pieces:
            raise EOFError

    def has_left(self) -> bool:
        """Whether the client has closed the connection, or its side of it."""
        return self._has_left

    async def wait_for_disconnect(self) -> None:
        """Wait until the client has closed the connection, or its side of it."""
        if not self._has_left:
            self._gone = self._gone or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._gone)

    def answer(self, status: int, lines: bytes, body: bytes | None) -> None:
        """Send a whole answer. `lines`: its header lines, each with its end, without those of framing, which
        are added. A body of None has no length either (204, 304); that of HEAD is measured, not sent.
        """
        closes = self._closes(status)
        ending = _CLOSE if closes else b""
        if body is None:
            whole = b"%b%b%b\r\n" % (STATUS_LINES[status], lines, ending)
        else:
            shown = b"" if self.method == "HEAD" else body
            form = b"%b%b%bcontent-length: %d\r\n\r\n%b"
            whole = form % (STATUS_LINES[status], lines, ending, len(body), shown)
        self.is_answered = True
        self._connection.write(whole)
        self._connection.finish(closes=closes)

    def begin(self, status: int, lines: bytes, length: int | None = None) -> None:
        """Send the head of an answer whose body follows by `write`, of `length` bytes if that is known."""
        closes = self._closes(status)
        ending = _CLOSE if closes else b""
        if length is not None:
            ending += b"content-length: %d\r\n" % length
        elif self._takes_chunks and status not in BODILESS:
            self._is_chunked = True
            ending += _CHUNKED
        self.keeps_alive = not closes
        self._connection.write(b"%b%b%b\r\n" % (STATUS_LINES[status], lines, ending))

    async def write(self, piece: bytes) -> None:
        """Send a piece, and wait while the client is slow to take it."""
        if piece and self.method != "HEAD":
            self._connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)
            await self._connection.drain()

    def end(self) -> None:
        """The body is whole."""
        if self._is_chunked and self.method != "HEAD":
            self._connection.write(_LAST_CHUNK)
        self.is_answered = True
        self._connection.finish(closes=not self.keeps_alive)

    def abort(self) -> None:
        """End the connection without an answer, or in the middle of one, so that the client notices."""
        self._connection.abort()

    def _closes(self, status: int) -> bool:
        """Whether this answer is the last of its connection (RFC 9112, 9.3 and 9.6): the client or a stop
        wants that, or a rest of the body is left that will not be discarded.
        """
        if not self.keeps_alive or self._connection.is_draining or self._is_lost:
            return True
        return not self.is_complete and not self._can_discard_rest(status)

    def _can_discard_rest(self, status: int) -> bool:
        """Whether the rest is short, announced, and sent unasked (without Expect); after a 408 it is late."""
        length = value_of(self.head.headers, b"content-length")
        return (
            0 < len(length) < _LENGTH_DIGITS_MAX
            and int(length) <= DISCARDED_BYTES_MAX
            and status != _REQUEST_TIMEOUT
            and (self._asked or not value_of(self.head.headers, b"expect"))
        )

    # For the connection.

    def feed(self, piece: bytes) -> None:
        if self.is_answered:
            return  # discarded
        self._pieces.append(piece)
        self.waiting_bytes += len(piece)
        self._wake()

    def complete(self) -> None:
        self.is_complete = True
        self._wake()

    def body_lost(self) -> None:
        """The connection ended before the body was complete."""
        self._is_lost = True
        self._wake()

    def client_left(self) -> None:
        """The client has closed the connection, or its side of it."""
        self._has_left = True
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
