"""The only place that asks the time, so that a test can steer it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the service knows about time."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; may step back when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back; only differences mean something."""
        ...


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.perf_counter)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
