"""One connection of a client: its requests one after the other, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

import structlog

from petstore.http.exchange import Exchange
from petstore.http.head_cache import HeadCache
from petstore.http.progress import AnswerProgress, reset, unsent_bytes
from petstore.http.reading import Reader
from petstore.http.refusals import refusal

_BODY_AHEAD_BYTES = 64 * 1024  # how much of a body may wait for the application
# For a connection without a request, with a part of its head, or with the rest of a body that nobody reads.
_IDLE_SECONDS = 10.0
# For the client's end of a connection whose last answer it may not have read yet (RFC 9112, 9.6).
LINGER_SECONDS = 1.0

# The buffer of all connections, parsed before the next read. The 455 smallest requests take a millisecond.
_READ = memoryview(bytearray(8 * 1024))

_log = structlog.get_logger("petstore")


class Server(Protocol):
    """What a connection needs of its server."""

    application: Callable[[Exchange], None]
    is_draining: bool
    head_cache: HeadCache
    now: float  # seconds of the loop's clock, brought up to date about once a second

    def time(self) -> float: ...  # the same to the moment

    def call_soon(self, callback: Callable[[], object]) -> object: ...

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """Implements exchange.Wire."""

    _transport: asyncio.Transport

    def __init__(self, server: Server) -> None:
        self._server = server
        self._current: Exchange | None = None  # it is answered at this moment
        self._refusal = 0  # the status that ends the connection, after the answers
        self._since = server.now  # when the last answer ended or the next request began
        self._has_ended = False  # the client sends nothing any more
        self._is_stopping = False  # the server stops
        self._is_closing = False  # nothing is read any more
        self._is_paused = False
        self._room: asyncio.Future[None] | None = None  # until the client has taken something
        self._progress = AnswerProgress()

    @property
    def has_asked(self) -> bool:
        return self._reader.heads > 0

    @property
    def is_draining(self) -> bool:
        return self._server.is_draining

    # asyncio's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        client = transport.get_extra_info("peername", ("unknown", 0))[:2]
        self._reader = Reader(self, client, self._server.head_cache)
        self._queue = self._reader.requests
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._queue.clear()
        self.eof_received()
        self.resume_writing()
        self._reader.close()
        self._server.closed(self)

    def eof_received(self) -> bool:
        """True: the client may still read what is being answered."""
        self._has_ended = True
        if self._reader.arriving is not None:
            self._reader.arriving.body_lost()
        if self._current is not None:
            self._current.client_left()
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
        if not self._reader.unfinished and self._current is None:
            self._since = self._server.now
        if status := self._reader.read(data):
            self._refuse(status)
        if self._current is None and (self._queue or self._refusal):
            # Later: uvloop reads sockets before it runs the callback that ends the store's last snapshot.
            self._server.call_soon(self._next)
        self._pause_reading()

    def _pause_reading(self) -> None:
        """Pause while the client is ahead of the application. After the last answer, bytes are dropped."""
        waiting_bytes = 0 if self._reader.arriving is None else self._reader.arriving.waiting_bytes
        is_ahead = len(self._queue) > (self._current is None) or waiting_bytes > _BODY_AHEAD_BYTES
        if is_ahead and not self._is_closing:
            self._is_paused = True
            self._transport.pause_reading()

    def _refuse(self, status: int) -> None:
        """Bytes came that are not a request or a body."""
        last = self._queue[-1] if self._queue else self._current
        if self._reader.arriving is not None:
            self._reader.arriving.body_lost()
        elif last is None or last.keeps_alive:  # else it may be anything (RFC 9112, 9.6)
            self._refusal = self._refusal or status

    # For the exchange.

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        if self._room is not None:
            await asyncio.shield(self._room)

    def resume_reading(self) -> None:
        if self._is_paused and not self._queue and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def finish(self, *, closes: bool) -> None:
        self._current = None
        self._since = self._server.now
        if closes or ((self._has_ended or self._is_stopping) and not self._queue and not self._refusal):
            self._close()
        elif self._queue or self._refusal:
            self._server.call_soon(self._next)
        else:
            self.resume_reading()

    def abort(self) -> None:
        self._is_closing = True
        reset(self._transport)

    # For the server.

    def check(self, answer_timeout_seconds: float) -> bool:
        """End the connection if its client lets it wait too long. True: it did not read an answer."""
        now = self._server.now
        # Ask the kernel only where a client may not have all of its answer: that costs ten times as much.
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
        """At a stop. Others close after their answers, those too that began before the drain."""
        self._is_stopping = True
        if self._current is None and not self._queue and not self._is_closing:
            self._close()

    def _next(self) -> None:
        """Begin the next answer, each in its own turn of the loop, if the client reads the ones before."""
        if self._current is not None or self._room is not None or self._is_closing:
            return
        if self._queue:
            self._current = self._queue.popleft()
            if self._has_ended:
                self._current.client_left()
            self.resume_reading()
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
        still_sends = bool(self._reader.arriving or self._reader.unfinished or self._queue or self._is_paused)
        self._queue.clear()
        self._is_closing = True
        if self._has_ended or not still_sends or self._transport.is_closing():
            self._transport.close()
        else:
            self._since = self._server.time()  # `now` may be as old as the client's whole time
            self._transport.write_eof()
            self.resume_reading()
