"""The only place that asks the time, so that a test can steer it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

_LATE_SECONDS = 1.0


class Clock(Protocol):
    """What the service knows about time."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; may step back when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back; only differences mean something."""
        ...


class AwakeClock:
    """Seconds for which this process was awake, by a monotonic clock.

    A process may be stopped, and a machine paused, with everybody whom the process waits for. So what a wait
    took too long does not count.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lost = 0.0
        self._wait_began = 0.0

    def __call__(self) -> float:
        return self._monotonic() - self._lost

    def wait_begins(self) -> None:
        self._wait_began = self._monotonic()

    def wait_ended(self, timeout: float) -> None:
        """After a wait of at most `timeout` seconds. On a busy machine it may end a second late."""
        late = self._monotonic() - self._wait_began - timeout
        if late > _LATE_SECONDS:
            self._lost += late


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.perf_counter)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
