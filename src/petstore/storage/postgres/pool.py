"""A pool of connections, bounded in connections, in waiting time and in waiters.

asyncpg's pool makes a proxy, a timer and a task for each use. Even with a reset that sends nothing, a page
takes 1.6 to 1.8 times the CPU through it: docs/decisions/0014.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable

# Firewalls and poolers drop connections that are idle for longer.
_IDLE_MAX_SECONDS = 300.0

Connection = Any  # asyncpg is untyped
Connect = Callable[[], Awaitable[Connection]]


async def close_connection(connection: Connection) -> None:
    """Close within a second, also when the server does not answer."""
    try:
        await connection.close(timeout=1)
    except Exception:
        connection.terminate()


class Pool:
    """Hands out connections, the most recently used one first; opens them only when they are needed."""

    def __init__(
        self, connect: Connect, clock: Clock, size: int, timeout_seconds: float, max_waiters: int
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._size = self._free = size
        self._timeout = timeout_seconds
        self._max_waiters = max_waiters
        self._idle: list[tuple[Connection, float]] = []
        self._waiters: deque[tuple[asyncio.Future[bool], float]] = deque()  # the first one's time ends first
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def in_use(self) -> int:
        """Connections that are handed out or being opened."""
        return self._size - self._free

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    async def acquire(self) -> Connection:
        """A connection for the caller alone, until `release`.

        Raises StoreUnavailable and the driver's errors.
        """
        if self._closed:
            raise StoreUnavailable("The service is shutting down; nothing was stored.")
        if self._free:
            self._free -= 1
        else:
            await self._wait_for_slot()
        idle = self._idle
        while idle:
            connection, since = idle.pop()
            if not connection.is_closed():
                if self._clock.monotonic() - since < _IDLE_MAX_SECONDS:
                    return connection
                connection.terminate()
        try:
            return await self._connect()
        except BaseException:
            self._free_slot()
            raise

    def release(self, connection: Connection | None) -> None:
        """Give a connection back; None for one that its user discards. A closed one is discarded here."""
        if connection is not None:
            if self._closed:
                connection.terminate()
            elif not connection.is_closed():
                self._idle.append((connection, self._clock.monotonic()))
        self._free_slot()

    def expire_idle(self) -> None:
        """Discard the idle connections after one broke: the others are probably broken too."""
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.terminate()

    async def close(self) -> None:
        """Refuse requests and close the idle connections; those in use are closed at their release."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            await close_connection(connection)

    async def _wait_for_slot(self) -> None:
        if len(self._waiters) >= self._max_waiters:
            raise StoreUnavailable(
                "Too many requests wait for the store; nothing was stored, try again shortly."
            )
        loop = asyncio.get_running_loop()
        slot: asyncio.Future[bool] = loop.create_future()
        waiter = slot, self._clock.monotonic() + self._timeout
        self._waiters.append(waiter)
        if self._timer is None:  # one for all waiters: each of its own is a twelfth of a page
            self._timer = loop.call_later(self._timeout, self._end_waits)
        try:
            came = await slot
        except BaseException:
            if slot.done() and not slot.cancelled():
                if slot.result():
                    self._free_slot()  # the slot came together with the cancellation
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
        if not came:
            raise StoreUnavailable(
                "The store is busy: no connection to it came free in time; nothing was stored.",
                public="The store is busy; nothing was stored. Try again shortly.",
            )

    def _end_waits(self) -> None:
        """End the waits whose time has come; the others' comes later."""
        self._timer = None
        while self._waiters:
            slot, ends_seconds = self._waiters[0]
            left_seconds = ends_seconds - self._clock.monotonic()
            if left_seconds > 0:
                self._timer = asyncio.get_running_loop().call_later(left_seconds, self._end_waits)
                return
            self._waiters.popleft()
            if not slot.done():
                slot.set_result(False)

    def _free_slot(self) -> None:
        """Hand the slot to the first waiter that is still there."""
        while self._waiters:
            slot, _ = self._waiters.popleft()
            if not slot.done():
                slot.set_result(True)
                return
        self._free += 1
