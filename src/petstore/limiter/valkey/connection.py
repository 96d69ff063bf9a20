"""One connection to Valkey: pipelined, and lost when an answer takes longer than PETSTORE_VALKEY_TIMEOUT.

Our own, since client libraries cost too much: docs/decisions/0011.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import libvalkey

from petstore.limiter.valkey.scripts import command
from petstore.limiter.valkey.url import ValkeyUrl

# Calls carry no timestamp: a watchdog ticks, and remembers how many calls had been sent. A call that is
# unanswered for 19 to 20 ticks and a last one is an outage: after the whole timeout, and a twentieth more.
_TICKS = 19
_TICK = 0.05  # a part of the timeout
CONNECT_SECONDS = 1.0


class Unreachable(Exception):
    """Valkey did not answer, or answered that it can't do its work now."""


class Connection(asyncio.Protocol):
    """Writes all commands of one turn of the event loop together; replies come in the order of commands."""

    def __init__(self, timeout_seconds: float) -> None:
        self._tick_seconds = timeout_seconds * _TICK
        self._loop = asyncio.get_running_loop()
        self._reader = libvalkey.Reader()
        self._waiting: deque[Callable[[Any], None]] = deque()
        self._out: list[Callable[[], bytes]] = []
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
        """Send a command. The result is its reply, also an error of the server, or raises Unreachable."""
        future = self._loop.create_future()
        self.send(lambda: sent, partial(_settle, future))
        return future

    def send(self, encode: Callable[[], bytes], callback: Callable[[Any], None]) -> None:
        """Send a command: `callback` is called once with the reply, or with Unreachable.

        `encode` is called at the end of this turn of the event loop, unless the connection is lost before.
        Raises Unreachable, and does not call `callback` then.
        """
        if self.is_lost:
            raise Unreachable("the connection is lost")
        self._waiting.append(callback)
        self._sent += 1
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(encode)
        if self._watch is None:
            self._sent_at_ticks.clear()
            self._watch = self._loop.call_later(self._tick_seconds, self._tick)

    def _flush(self) -> None:
        if self._transport is not None and self._out:
            self._transport.write(b"".join([encode() for encode in self._out]))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        reader, waiting = self._reader, self._waiting
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                if not waiting:
                    raise libvalkey.ProtocolError("a reply to no call")
                self._answered += 1
                waiting.popleft()(reply)
        except libvalkey.ProtocolError as error:
            self.give_up(f"it does not speak the protocol of Valkey: {error}")

    def _tick(self) -> None:
        """Declare the connection lost if a call from _TICKS ticks ago is unanswered."""
        if self._is_overdue():
            # This process may have paused, with answers unread: let it read them before the last tick.
            self._watch = self._loop.call_later(self._tick_seconds, self._last_tick)
            return
        self._sent_at_ticks.append(self._sent)
        waits = self._answered < self._sent
        self._watch = self._loop.call_later(self._tick_seconds, self._tick) if waits else None

    def _is_overdue(self) -> bool:
        sent = self._sent_at_ticks
        return len(sent) == _TICKS and self._answered < sent[0]

    def _last_tick(self) -> None:
        if self._is_overdue():
            self.give_up("no answer in time")
        else:
            self._tick()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self.give_up(f"the connection was lost: {exc}" if exc else "the connection was closed")

    async def close(self) -> None:
        """Close it and wait until it is closed."""
        self.give_up("closed")
        await self._closed.wait()

    def give_up(self, reason: str) -> None:
        """Declare it lost: all calls without a reply raise Unreachable, and nothing more is sent."""
        if self.is_lost:
            return
        self.is_lost = True
        if self._watch is not None:
            self._watch.cancel()
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()
        self.on_lost(reason)
        while self._waiting:
            self._waiting.popleft()(Unreachable(reason))


def _settle(future: asyncio.Future[Any], reply: Any) -> None:
    if future.done():  # its request may have been cancelled
        return
    if isinstance(reply, Unreachable):
        future.set_exception(reply)
        future.exception()  # retrieved, or asyncio logs the exceptions of cancelled requests
    else:
        future.set_result(reply)


async def connect(url: ValkeyUrl, *greeting: bytes, timeout_seconds: float) -> Connection:
    """Connect, authenticate, select the database and send the commands of `greeting`, in one second at most.

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
        return Connection(timeout_seconds)

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
    """The system's text; asyncio's has the address and the number of the error too."""
    if isinstance(error, ssl.SSLError | socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno else str(error) or "no answer"


def raise_for(reply: object) -> None:
    """Raises Unreachable for a reply that is an error."""
    if isinstance(reply, libvalkey.ReplyError):
        raise Unreachable(str(reply))
