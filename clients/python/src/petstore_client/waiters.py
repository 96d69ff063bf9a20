"""A call that waits, or goes on for ever: what wakes and what ends it, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import httpx2

C = TypeVar("C")
_T = TypeVar("_T")
Calls = Callable[[C], _T]  # what makes calls of a client
AsyncCalls = Callable[[C], Awaitable[_T]]


class Ended(Exception):
    """The client, or the Follow, was closed."""


class _Endable:
    has_ended = False

    def check(self) -> None:
        """Raise Ended after `end`."""
        if self.has_ended:
            raise Ended


class Waiter(_Endable):
    """Sleeps on an event of its own. Any thread may wake or end it."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # that the call reads from

    def wake(self) -> None:
        self.event.set()

    def end(self) -> None:
        """End the call, also one that reads: closing its connection would not end the read."""
        with self._lock:
            self.has_ended = True
            if self._socket is not None:
                with suppress(OSError):  # it has just been closed
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self.wake()

    def until_end(self) -> AbstractContextManager[None]:
        """Around a call that `end` ends: it raises Ended by itself."""
        return nullcontext()

    @contextmanager
    def reading(self, stream: Any) -> Iterator[None]:
        """Know the connection of httpx2 from which the call reads, so that a close ends it."""
        with self._lock:
            if self.has_ended:
                raise httpx2.ReadError("The client was closed.")
            self._socket = stream.get_extra_info("socket")
        try:
            yield
        finally:
            with self._lock:
                self._socket = None


class AsyncWaiter(_Endable):
    """Waits as Waiter does, for a task. Any thread may wake it, its event loop may end it."""

    reading: Callable[[Any], AbstractContextManager[None]] = nullcontext

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._call: asyncio.Timeout | None = None

    def wake(self) -> None:
        with suppress(RuntimeError):  # its loop was closed while it waited
            self._loop.call_soon_threadsafe(self.event.set)

    def end(self) -> None:
        """End what is inside `until_end`."""
        self.has_ended = True
        if self._call is not None:
            with suppress(RuntimeError):  # it is over
                self._call.reschedule(0)

    @asynccontextmanager
    async def until_end(self) -> AsyncIterator[None]:
        """Around a call that `end` ends; raises Ended then."""
        try:
            async with asyncio.timeout(None) as self._call:
                yield
        except TimeoutError:
            self.check()
            raise
