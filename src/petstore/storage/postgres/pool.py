"""A pool of connections, bounded in connections, in waiting time and in waiters.

Not asyncpg's own pool: that one sends a statement of its own at every return, which doubles the round trips,
and its bounds do not end in an error of ours.
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
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def in_use(self) -> int:
        """Connections that are handed out or being opened."""
        return self._size - self._free

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def open(self) -> int:
        """All connections, idle ones included."""
        return self.in_use + len(self._idle)

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
            self._pass_on()
            raise

    def release(self, connection: Connection) -> None:
        """Give a connection back; a closed one is forgotten."""
        if self._closed:
            connection.terminate()
        elif not connection.is_closed():
            self._idle.append((connection, self._clock.monotonic()))
        self._pass_on()

    def forget(self) -> None:
        """Free the slot of a connection that is discarded."""
        self._pass_on()

    def distrust(self) -> None:
        """Discard the idle connections: one broke, or its server has changed.

        Else each of them would cost a request.
        """
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.terminate()

    async def close(self) -> None:
        """Refuse requests and close the idle connections; those in use are closed at their release."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            try:
                await connection.close(timeout=1)
            except Exception:
                connection.terminate()

    async def _wait_for_slot(self) -> None:
        """Wait for a slot."""
        if len(self._waiting) >= self._max_waiters:
            raise StoreUnavailable(
                "Too many requests wait for the store; nothing was stored, try again shortly."
            )
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._timeout):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # the slot came with the cancellation: the next waiter takes it
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise StoreUnavailable(
                    "The store is busy: no connection to it came free in time; nothing was stored.",
                    public="The store is busy; nothing was stored. Try again shortly.",
                ) from error
            raise

    def _pass_on(self) -> None:
        """Hand the free connection's slot to the first waiter."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
