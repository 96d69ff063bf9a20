"""One window of the limits as seen by a process: calls left, latest end, use by other processes."""

from __future__ import annotations

import math

from petstore_client.limits import Window

_SAME_WINDOW_SECONDS = 2.0  # resets in two answers differ by no more than the clocks of replicas
_SHORTEST_AGE_SECONDS = 1.0


class KnownWindow:
    """A window read from answers. Times are monotonic, in seconds."""

    def __init__(self, seen: Window, now: float, jitter: float, unsettled: int) -> None:
        """`unsettled` calls of this process may not be counted yet; `jitter` is a random number below 1."""
        self.reset_unix = seen.reset_at.timestamp()
        self.limit = seen.limit
        self.remaining = seen.remaining
        self.ends_at = now + seen.reset_after_seconds
        self._length = seen.length_seconds
        self._read_at = now
        self._latest_rate = math.inf  # calls per second between the last two answers
        self.jitter = jitter
        self.rebase(unsettled)

    def is_same(self, seen: Window) -> bool:
        """Whether the answer is about this window, at its current limit."""
        near = abs(seen.reset_at.timestamp() - self.reset_unix) <= _SAME_WINDOW_SECONDS
        return near and seen.limit == self.limit

    def is_later_than(self, seen: Window) -> bool:
        """Whether the answer is about an earlier window."""
        return seen.reset_at.timestamp() < self.reset_unix - _SAME_WINDOW_SECONDS

    def sent(self) -> None:
        """One more call of this process may be counted from now on."""
        self._own += 1

    def learn(self, seen: Window, now: float) -> None:
        """Update from an answer. Answers may arrive out of order.

        The service rounds seconds up: the window ends at most one second before `ends_at`.
        """
        self.ends_at = min(self.ends_at, now + seen.reset_after_seconds)
        if seen.remaining <= self.remaining:
            age = now - self._read_at
            if age >= _SHORTEST_AGE_SECONDS:
                self._latest_rate = (self.remaining - seen.remaining) / age
            self.remaining, self._read_at = seen.remaining, now

    def spent_by_others(self, remaining: int) -> bool:
        """Whether other processes have used the window."""
        return remaining < self._base - self._own

    def rebase(self, unsettled: int) -> None:
        """Restart the comparison; `unsettled` calls of this process may not be counted yet."""
        self._base, self._own = self.remaining, unsettled

    def ample_at(self) -> float:
        """When one more call leaves half the limit, in proportion to the time until the window's end."""
        if not self._length:
            return -math.inf
        enough_for = 2 * max(self.remaining - 1, 0) / max(self.limit, 1) * self._length
        return self.ends_at - enough_for

    def left_at(self, now: float) -> float:
        """An estimate of the calls left now, at the recent rate of all processes.

        A window often begins with a burst of waiting calls, which says little about the rate after it.
        """
        if not self._length:
            return self.remaining
        age = max(self._read_at - (self.ends_at - self._length), _SHORTEST_AGE_SECONDS)
        used_per_second = min((self.limit - self.remaining) / age, self._latest_rate)
        return self.remaining - used_per_second * (now - self._read_at)
