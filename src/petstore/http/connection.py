"""One connection of a client: its requests one after the other, and what ends it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import structlog
from httptools import HttpParserError, HttpParserInvalidMethodError, HttpParserUpgrade, HttpRequestParser

from petstore.http.exchange import Exchange
from petstore.http.heads import METHOD, Headers, framing_of, in_origin_form
from petstore.http.progress import Progress, reset, unsent_bytes
from petstore.http.refusals import refusal

# Larger than the application's bounds, so that its own answer comes first.
_HEAD_MAX_BYTES = 64 * 1024
_BODY_AHEAD_BYTES = 64 * 1024  # of a body, that may wait for the application
# Without a request, with a part of its head, or with the rest of a body that nobody reads.
_IDLE_SECONDS = 10.0
# For the client's end of a connection whose last answer it may not have read yet (RFC 9112, 9.6).
LINGER_SECONDS = 1.0

# Of all connections: it is parsed before the next read. The 455 smallest requests in it take a millisecond.
_READ = memoryview(bytearray(8 * 1024))
_VERSIONS = {"1.1": True, "1.0": False}

_log = structlog.get_logger("petstore")


class Server(Protocol):
    """What a connection needs of its server."""

    application: Callable[[Exchange], None]
    is_draining: bool
    now: float  # seconds of the loop's clock, brought up to date about once a second

    def call_soon(self, callback: Callable[[], object]) -> object: ...

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """Implements exchange.Wire and httptools' callbacks."""

    _transport: asyncio.Transport

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = HttpRequestParser(self)
        self._client = ("unknown", 0)
        self._method = ""  # of the request whose head arrives, if llhttp does not know it
        self._target = b""
        self._headers: Headers = []
        self.heads = 0  # of requests that have arrived
        self._is_between = True  # the last request is complete, and nothing of the next one has arrived
        self._unfinished = 0  # bytes since a request or a piece of a body was complete
        self._arriving: Exchange | None = None  # its body is not complete
        self._current: Exchange | None = None  # it is answered at this moment
        self._queue: deque[Exchange] = deque()  # pipelined ones
        self._refusal = 0  # the status that ends the connection, after the answers
        self._since = server.now  # when the last answer ended or the next request began
        self._has_ended = False  # the client sends nothing any more
        self._is_closing = False  # nothing is read any more
        self._is_paused = False
        self._room: asyncio.Future[None] | None = None  # until the client has taken something
        self._progress = Progress()

    @property
    def is_draining(self) -> bool:
        return self._server.is_draining

    # asyncio's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._client = transport.get_extra_info("peername", self._client)[:2]
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._queue.clear()
        self.eof_received()
        self.resume_writing()
        self._arriving = None
        del self._parser  # both refer to this connection: cycles are seldom collected
        self._server.closed(self)

    def eof_received(self) -> bool:
        """True: the client may still read what is being answered."""
        self._has_ended = True
        if self._arriving is not None:
            self._arriving.lose()
        if self._current is not None:
            self._current.leave()
        return not self._is_closing and bool(self._current or self._queue or self._refusal)

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self._room = None
        if self._queue or self._refusal:
            self._server.call_soon(self._next)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _READ

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing or self._refusal:
            return
        data = bytes(_READ[:nbytes])
        if not self._unfinished and self._current is None:
            self._since = self._server.now
        self._unfinished += len(data)
        try:
            while data:
                data = self._feed(data)
        except HttpParserError:
            self._refuse(400)
        if self._unfinished > _HEAD_MAX_BYTES:
            self._refuse(414 if len(self._target) > _HEAD_MAX_BYTES // 2 else 431)
        if self._current is None and (self._queue or self._refusal):
            # Not now: uvloop reads before it ends what the store saw in its last turn.
            self._server.call_soon(self._next)
        self._pause_reading()

    def _pause_reading(self) -> None:
        """While the client is ahead of the application. Bytes after the last answer are read, and dropped."""
        waiting_bytes = 0 if self._arriving is None else self._arriving.waiting_bytes
        is_ahead = len(self._queue) > (self._current is None) or waiting_bytes > _BODY_AHEAD_BYTES
        if is_ahead and not self._is_closing:
            self._is_paused = True
            self._transport.pause_reading()

    # httptools' callbacks: it turns their errors into an HttpParserError.

    def on_message_begin(self) -> None:
        self._is_between = False

    def on_url(self, piece: bytes) -> None:
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._arriving is None:  # else a trailer, which no operation reads
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._arriving is not None:  # the parser reads the body of an ignored upgrade
            return
        parser, headers, target = self._parser, self._headers, self._target
        is_current_version = _VERSIONS[parser.get_http_version()]
        if target[:1] != b"/":
            target, headers = in_origin_form(target, headers)
        exchange = Exchange(
            self,
            self._method or parser.get_method().decode("ascii"),
            target,
            headers,
            self._client,
            keeps_alive=is_current_version and parser.should_keep_alive(),
            takes_chunks=is_current_version,
        )
        self._method, self._target, self._headers = "", b"", []
        self.heads += 1
        self._unfinished = 0
        self._arriving = exchange
        self._queue.append(exchange)

    def on_body(self, piece: bytes) -> None:
        self._unfinished = 0
        if self._arriving is not None:
            self._arriving.feed(piece)

    def on_message_complete(self) -> None:
        if self._arriving is not None:
            self._arriving.complete()
            self._arriving, self._unfinished, self._is_between = None, 0, True

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
        """Its request is like any other (RFC 9110, 7.8). httptools reads no body of it: a new parser does."""
        framing = framing_of(self._queue[-1].headers)
        if framing:
            self._arriving = self._queue[-1]
            self._arriving.is_complete = False
            self._parser = HttpRequestParser(self)
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)
            self._target = b""

    def _refuse(self, status: int) -> None:
        """Bytes came that are no request, or no body."""
        last = self._queue[-1] if self._queue else self._current
        if self._arriving is not None:
            self._arriving.lose()
        elif last is None or last.keeps_alive:  # else it may be anything (RFC 9112, 9.6)
            self._refusal = self._refusal or status

    # For the exchange.

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        if self._room is not None:
            await asyncio.shield(self._room)

    def read_on(self) -> None:
        if self._is_paused and not self._queue and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def finish(self, *, closes: bool) -> None:
        self._current = None
        self._since = self._server.now
        if closes or (self._has_ended and not self._queue and not self._refusal):
            self._close()
        elif self._queue or self._refusal:
            self._server.call_soon(self._next)
        else:
            self.read_on()

    def abort(self) -> None:
        self._is_closing = True
        reset(self._transport)

    # For the server.

    def check(self, answer_timeout_seconds: float) -> bool:
        """End the connection if its client lets it wait too long. True: it did not read an answer."""
        now = self._server.now
        # Clients that have had all of an answer for so long cost a tenth of those that may have not.
        is_quiet = self._current is None and now - self._since > _IDLE_SECONDS / 2
        waiting = self._transport.get_write_buffer_size() if is_quiet else unsent_bytes(self._transport)
        if self._progress.has_stalled(self._transport, waiting, now, answer_timeout_seconds):
            self.abort()
            return True
        if waiting or self._current is not None or self._queue:
            self._since = now
        elif now - self._since > (LINGER_SECONDS if self._is_closing else _IDLE_SECONDS):
            self._transport.close()
        return False

    def close_if_idle(self) -> None:
        """At a stop. Others close after their answers."""
        if self._current is None and not self._queue and not self._is_closing:
            self._close()

    def _next(self) -> None:
        """Begin the next answer, each in its own turn of the loop, if the client reads the ones before."""
        if self._current is not None or self._room is not None or self._is_closing:
            return
        if self._queue:
            self._current = self._queue.popleft()
            if self._has_ended:
                self._current.leave()
            self.read_on()
            try:
                self._server.application(self._current)
            except Exception as error:
                _log.error("unexpected error", exc_info=error)
                self.abort()
        elif self._refusal:
            self.write(refusal(self._refusal))
            self._close()

    def _close(self) -> None:
        """After the answers. A client that still sends has time to read them: a reset would discard them."""
        still_sends = bool(self._arriving or self._unfinished or self._queue or self._is_paused)
        self._queue.clear()
        self._is_closing = True
        if self._has_ended or not still_sends or self._transport.is_closing():
            self._transport.close()
        else:
            self._transport.write_eof()
            self.read_on()
