"""Simulated time: an event loop whose clock jumps to the next event, and the clocks of machines in it.

Everything of asyncio works on it, so the service's own code runs unchanged, minutes in seconds.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# 10 seconds before a UTC midnight: windows of two days are seen in every run.
EPOCH_MS = 1_798_761_590_000

_WAIT_SECONDS = 1.0  # of real time: a thread wakes the loop long before

# Connects a client's protocol, by the name of the host that the client wants to reach.
Connect = Callable[[Callable[[], asyncio.Protocol], str], tuple[asyncio.Transport, asyncio.Protocol]]


class _Leap(selectors.SelectSelector):
    """Waits for nothing but threads: time leaps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stands = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if self.stands:
            return super().select(0 if timeout == 0 else _WAIT_SECONDS)
        if timeout is None:
            if events := super().select(_WAIT_SECONDS):
                return events
            raise RuntimeError("Nothing is left to happen, and somebody still waits.")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs events in the order of their times; the same ones every time."""

    def __init__(self) -> None:
        self._leap = _Leap()
        super().__init__(self._leap)
        self._clock_resolution = 1e-9
        self.connect: Connect | None = None

    def time(self) -> float:
        return self._leap.now

    async def create_connection(self, protocol_factory: Any, host: Any = None, *_: Any, **__: Any) -> Any:
        """What a client of the simulated network calls."""
        assert self.connect is not None
        return self.connect(protocol_factory, host)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Time stands during the block, which waits for threads."""
        self._leap.stands += 1
        try:
            yield
        finally:
            self._leap.stands -= 1

    def leap_to(self, when: float) -> None:
        """Jump there, over all that was to happen before: it happens then."""
        self._leap.now = max(self._leap.now, when)
        self._clock_resolution = max(self._clock_resolution, 2 * math.ulp(when))

    async def at(self, when: float) -> None:
        """Wait until then."""
        future = self.create_future()
        self.call_at(when, _wake, future)
        await future


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class VirtualClock:
    """Implements clock.Clock for one machine; its wall clock may be off."""

    def __init__(self, loop: VirtualLoop, skew_seconds: float = 0.0) -> None:
        self._loop = loop
        self._skew_seconds = skew_seconds

    def now_ms(self) -> int:
        return EPOCH_MS + int((self._loop.time() + self._skew_seconds) * 1_000)

    def pinned_ms(self) -> int:
        return self.now_ms()

    def monotonic(self) -> float:
        # Machines started at different times, so their leases end at different ones.
        return self._loop.time() + 1_000.0 + 100.0 * self._skew_seconds
