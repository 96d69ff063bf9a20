"""A bound on costly work, such as rendering pages for a new address."""

from __future__ import annotations

from petstore.core.clock import Clock


class TokenBucket:
    """How often something costly may happen: `burst` times at once, `per_second` in the long run."""

    def __init__(self, clock: Clock, *, burst: float, per_second: float) -> None:
        self._clock = clock
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._refilled_at = clock.monotonic()

    def take(self) -> bool:
        """Whether it may happen now."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._refilled_at) * self._per_second)
        self._refilled_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
