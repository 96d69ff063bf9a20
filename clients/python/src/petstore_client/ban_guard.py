"""How many refusals a process risks: so few that twenty processes with one key are never banned.

The service bans a key after more than 60 counted refusals within 5 minutes. It does not count those within
2 seconds of a window's first one.
"""

from __future__ import annotations

from collections import deque

SPAN_SECONDS = 300.0
_REFUSALS = 3  # 20 processes with one key: 60 counted refusals
_RISKED = 60  # refusals, and calls without an answer, each of which may have been one
_GRACE_SECONDS = 1.9


class BanGuard:
    """Remembers what may have been counted towards a ban. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._refusals: deque[float] = deque()
        self._unanswered: deque[float] = deque()
        self._passed_sent_at = float("-inf")

    def passed(self, sent_at: float) -> None:
        """A call was let through. Its window was not used up when it was sent."""
        self._passed_sent_at = max(self._passed_sent_at, sent_at)

    def refused(self, now: float) -> None:
        """A limit refused a call, whose answer came now.

        When another call was let through less than 2 seconds ago, the window's first refusal is younger than
        that, so this one is not counted.
        """
        if now - self._passed_sent_at > _GRACE_SECONDS:
            self._refusals.append(now)

    def unanswered(self, now: float) -> None:
        """A call got no answer: it may have been refused."""
        self._unanswered.append(now)

    def resumes_at(self, now: float) -> float:
        """When a call may be risked; not later than `now` if at once."""
        self._forget(now)
        oldest = now - SPAN_SECONDS
        if len(self._refusals) >= _REFUSALS:
            oldest = self._refusals[-_REFUSALS]
        spare = max(1, _RISKED - len(self._refusals))  # calls under way may all be refused
        if len(self._unanswered) >= spare:
            oldest = max(oldest, self._unanswered[-spare])
        return oldest + SPAN_SECONDS

    def may_risk_refusal(self, now: float) -> bool:
        """Whether to send a call that is likely to be refused."""
        self._forget(now)
        return len(self._refusals) < _REFUSALS - 1

    def _forget(self, now: float) -> None:
        for times in (self._refusals, self._unanswered):
            while times and times[0] + SPAN_SECONDS <= now:
                times.popleft()
