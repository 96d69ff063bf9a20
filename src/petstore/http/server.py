"""The HTTP server of a worker: its connections, how many, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import structlog

from petstore.http.connection import Connection
from petstore.http.exchange import Exchange
from petstore.http.head_cache import HeadCache

BACKLOG = 2_048
_CHECK_SECONDS = 1.0
_CHECKS_PER_TIMEOUT = 6
_CHECKED_AT_ONCE = 512  # connections, in about a millisecond; then others are served

_log = structlog.get_logger("petstore.worker")


class HttpServer:
    """Serves `application` on a listening socket that is open already, and shared with other processes.

    `application` answers an exchange at once or in a task of its own. At most `connections` are open; further
    clients wait in the backlog. `answer_timeout_seconds`: how long an answer may make no progress. `ended`
    counts the connections that were reset for that, or by `end_all`.
    """

    time: Callable[[], float]  # this and the next one are the loop's, from `serve` on
    call_soon: Callable[[Callable[[], object]], object]

    def __init__(
        self,
        application: Callable[[Exchange], None],
        listener: socket.socket,
        connections: int,
        answer_timeout_seconds: float,
    ) -> None:
        self.application = application
        self.listener = listener
        self.head_cache = HeadCache()
        self.is_draining = False
        self.now = 0.0
        self.ended = 0
        self._connections: set[Connection] = set()
        self._connections_max = connections
        self._answer_timeout_seconds = answer_timeout_seconds
        self._acceptor: asyncio.Server | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._is_full = False
        self._is_stopping = False
        self._is_idle = asyncio.Event()

    def __len__(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def has_newcomers(self) -> bool:
        """Whether a connection has sent no request yet."""
        return any(not connection.has_asked for connection in self._connections)

    async def serve(self) -> None:
        """Serve until `stop`, and then until the last connection has ended."""
        loop = asyncio.get_running_loop()
        self.time, self.call_soon = loop.time, loop.call_soon
        self.now = self.time()
        if not self._is_stopping:
            await self._accept()
        while not self._is_idle.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(
                    min(_CHECK_SECONDS, self._answer_timeout_seconds / _CHECKS_PER_TIMEOUT)
                ):
                    await self._is_idle.wait()
            await self._check()

    def drain(self) -> None:
        """Let each answer be the last of its connection from now on."""
        self.is_draining = True

    def stop_accepting(self) -> None:
        """The backlog stays with the processes that share the listener, which this one closes."""
        self._is_stopping = True
        self._close_acceptor()
        self.listener.close()

    def stop(self, answer_timeout_seconds: float) -> None:
        """Accept nothing more, and close each connection as soon as it is answered."""
        self.drain()
        self.stop_accepting()
        self._answer_timeout_seconds = min(self._answer_timeout_seconds, answer_timeout_seconds)
        for connection in list(self._connections):
            connection.close_if_idle()
        self._note_idle()

    def end_all(self) -> None:
        """Reset every connection."""
        for connection in list(self._connections):
            self.ended += 1
            connection.abort()

    # For its connections.

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        if len(self._connections) >= self._connections_max:
            self._is_full = True
            self._close_acceptor()

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._is_stopping:
            self._note_idle()
        elif self._is_full:
            self._is_full = False
            self._accepting = asyncio.create_task(self._accept_again())

    async def _accept_again(self) -> None:
        try:
            await self._accept()
        except OSError:  # no descriptor is free; the end of the next connection frees one
            self._is_full = True

    def _note_idle(self) -> None:
        if not self._connections:
            self._is_idle.set()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        self._acceptor = await loop.create_server(
            lambda: Connection(self), sock=self.listener.dup(), backlog=BACKLOG
        )
        if self._is_stopping or self._is_full:
            self._close_acceptor()

    def _close_acceptor(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None

    async def _check(self) -> None:
        """End connections whose clients let them wait."""
        self.now = self.time()
        ended = 0
        for number, connection in enumerate(list(self._connections), 1):
            ended += connection.check(self._answer_timeout_seconds)
            if number % _CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        if ended:
            self.ended += ended
            _log.info(
                "ended connections whose clients took nothing",
                count=ended,
                seconds=self._answer_timeout_seconds,
            )
