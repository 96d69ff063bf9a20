"""A clock that stands until a test moves it."""

from __future__ import annotations


class ManualClock:
    """Implements petstore.core.clock.Clock. Starts on a whole second, in the middle of a minute and a day."""

    def __init__(self, now_ms: int = 1_800_000_030_000) -> None:
        self.ms = now_ms
        self._set_by_ms = 0

    def now_ms(self) -> int:
        return self.ms

    def pinned_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return (self.ms - self._set_by_ms) / 1_000

    def advance(self, seconds: float) -> None:
        """Move the time; a negative number is a clock that was set back."""
        self.ms += round(seconds * 1_000)

    def set_by(self, seconds: float) -> None:
        """Set the time of day forward or back, as NTP does: the stopwatch stays."""
        self.advance(seconds)
        self._set_by_ms += round(seconds * 1_000)

    def set_seconds(self, unix_seconds: int) -> None:
        """Jump to a moment."""
        self.ms = unix_seconds * 1_000
