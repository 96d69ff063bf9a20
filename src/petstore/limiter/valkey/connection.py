"""One connection to Valkey: commands go out together, answers come back in order, none is waited for long.

A connection of our own instead of a client library, for its cost: docs/decisions/0011.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import libvalkey

from petstore.limiter.valkey.scripts import command
from petstore.limiter.valkey.url import ValkeyUrl

# How long an answer may take. Calls carry no timestamp: a watchdog ticks every 8 ms and remembers how many
# calls had been sent; a call unanswered for four to five ticks, and a last look, is an outage.
PATIENCE_SECONDS = 0.05
_TICKS = 4
_INTERVAL, _LAST_TICK = 0.16, 0.1  # parts of the patience; timers are late by up to a millisecond each
CONNECT_SECONDS = 1.0


class Unreachable(Exception):
    """No answer, or one that says that the server can't do its work now."""


class Connection(asyncio.Protocol):
    """Pipelined by nature: every call of a turn of the event loop is in one write."""

    def __init__(self, patience_seconds: float) -> None:
        self._tick_seconds = patience_seconds * _INTERVAL
        self._last_tick_seconds = patience_seconds * _LAST_TICK
        self._loop = asyncio.get_running_loop()
        self._reader = libvalkey.Reader()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._out: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._sent = self._answered = 0
        self._sent_at_ticks: deque[int] = deque(maxlen=_TICKS)
        self.is_lost = False
        self._closed = asyncio.Event()
        self.on_lost: Callable[[str], None] = lambda reason: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def call(self, sent: bytes) -> asyncio.Future[Any]:
        """Send a command; the reply, or Unreachable. An error that the server answers is a reply as well."""
        if self.is_lost:
            raise Unreachable("the connection is lost")
        future = self._loop.create_future()
        self._waiting.append(future)
        self._sent += 1
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(sent)
        if self._watch is None:
            self._sent_at_ticks.clear()
            self._watch = self._loop.call_later(self._tick_seconds, self._tick)
        return future

    def _flush(self) -> None:
        if self._transport is not None and self._out:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        reader, waiting = self._reader, self._waiting
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                future = waiting.popleft()
                self._answered += 1
                if not future.done():  # its request may have gone
                    future.set_result(reply)
        except (libvalkey.ProtocolError, IndexError) as error:
            self.give_up(f"it does not speak the protocol of Valkey: {error}")

    def _tick(self) -> None:
        """Whether everything is answered that was sent before the oldest look that is remembered."""
        if self._is_overdue():
            # It may be this process that paused, with the answers unread: read first, then judge.
            self._watch = self._loop.call_later(self._last_tick_seconds, self._last_tick)
            return
        self._sent_at_ticks.append(self._sent)
        waits = self._answered < self._sent
        self._watch = self._loop.call_later(self._tick_seconds, self._tick) if waits else None

    def _is_overdue(self) -> bool:
        looks = self._sent_at_ticks
        return len(looks) == _TICKS and self._answered < looks[0]

    def _last_tick(self) -> None:
        if self._is_overdue():
            self.give_up("no answer in time")
        else:
            self._tick()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self.give_up(f"the connection was lost: {exc}" if exc else "the connection was closed")

    async def close(self) -> None:
        """Give it up, and see that it is gone."""
        self.give_up("closed")
        await self._closed.wait()

    def give_up(self, reason: str) -> None:
        """Take it as lost: everybody who waits is told, and nothing more is sent."""
        if self.is_lost:
            return
        self.is_lost = True
        if self._watch is not None:
            self._watch.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_exception(Unreachable(reason))
                future.exception()  # nobody may be waiting any more
        self._waiting.clear()
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()
        self.on_lost(reason)


async def connect(url: ValkeyUrl, *greeting: bytes, patience_seconds: float = PATIENCE_SECONDS) -> Connection:
    """A connection that is ready for use: authenticated, its database chosen, each greeting answered.

    Raises Unreachable.
    """
    loop = asyncio.get_running_loop()
    first = [command(b"CLIENT", b"SETNAME", b"petstore")]
    if url.password:
        first.insert(0, command(b"AUTH", *filter(None, (url.user.encode(), url.password.encode()))))
    if url.database:
        first.append(command(b"SELECT", b"%d" % url.database))
    connection: Connection | None = None

    def make() -> Connection:
        return Connection(patience_seconds)

    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            if url.path:
                _, connection = await loop.create_unix_connection(make, url.path)
            else:
                tls = url.tls_context() if url.tls else None
                _, connection = await loop.create_connection(make, url.host, url.port, ssl=tls)
            for reply in await asyncio.gather(*map(connection.call, (*first, *greeting))):
                raise_for(reply)
    except BaseException as error:
        if connection is not None:
            await connection.close()
        if isinstance(error, OSError | TimeoutError):
            raise Unreachable(f"it can't be connected to: {_reason(error)}") from error
        raise
    return connection


def _reason(error: OSError) -> str:
    """In the system's words; asyncio's have the address and the number of the error."""
    if isinstance(error, ssl.SSLError | socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno else str(error) or "no answer"


def raise_for(reply: object) -> None:
    """Raise Unreachable when the reply says that the server can't do its work."""
    if isinstance(reply, libvalkey.ReplyError):
        raise Unreachable(str(reply))
