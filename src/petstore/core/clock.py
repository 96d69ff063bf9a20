"""The clock: other modules take it instead of asking for the time, so that a test can set it.

The HTTP server alone has other times: the event loop's, and the date of an answer to a malformed request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

_LATE_SECONDS = 1.0


class Clock(Protocol):
    """The time of day, and a stopwatch."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; may step back when the machine's clock is set."""

    def pinned_ms(self) -> int | None:
        """The time that a database must use instead of its own clock; None: its own decides."""

    def monotonic(self) -> float:
        """Seconds on a clock that never steps back; only differences mean something."""


class AwakeClock:
    """A clock, in seconds, that leaves out times when the process or its machine was paused.

    Its user works and waits in rounds. A pause shows as a round that ends more than a second after the
    timeout of its wait. The end of the round subtracts the excess. Until then the clock is too fast by it,
    and a deadline that is set meanwhile is too late by it.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lost = 0.0
        self._round_began = monotonic()

    def __call__(self) -> float:
        return self._monotonic() - self._lost

    def wait_ended(self, timeout: float) -> None:
        """Call it after each wait, of at most `timeout` seconds; work and a busy machine may add a second."""
        now = self._monotonic()
        late = now - self._round_began - timeout
        self._round_began = now
        if late > _LATE_SECONDS:
            self._lost += late


class SystemClock:
    """Implements Clock by the machine's clocks."""

    monotonic = staticmethod(time.perf_counter)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def pinned_ms(self) -> None:
        return None
