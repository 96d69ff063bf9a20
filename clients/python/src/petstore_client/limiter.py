"""The limiter of a key in a process: which call may send now, and until when all wait.

Pure: callers pass the time and report every outcome; it never waits. Drivers hold `lock` around each call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from petstore_client.ban_guard import SPAN_SECONDS, BanGuard
from petstore_client.errors import ApiError
from petstore_client.limits import Limits, Window
from petstore_client.windows import KnownWindow

_JITTER_SECONDS = 0.5  # after a reset, where other processes wait for it too
_OPTIMISM = 0.3  # share of the limit that others may have left: a few refusals cost less than idle calls
_REMEMBERED = 1_000  # calls without an answer, for a service that never sends its limits
_LOSSES_BEFORE_PAUSE = 3
_PAUSE_MAX_SECONDS = 60.0
_DOUBLINGS = 10  # more reach the longest pause, and in the end no number can hold them
NEVER = float("inf")


class Waiter(Protocol):
    """A call that waits for its slot."""

    def wake(self) -> None:
        """End its wait; called from any thread."""


@dataclass(eq=False)
class Permit:
    """One try of a call. It is under way from `take` until its outcome is reported.

    One that `waits` for an event may take minutes, so no other call waits for its answer.
    """

    waits: bool = False
    sent_at: float = NEVER


class Limiter:
    """Shared by all threads and tasks that use a key. Times are monotonic, in seconds."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._ban_guard = BanGuard()
        self._hold_until = -NEVER
        self._reason: ApiError | None = None
        self._waits_logged_at = -NEVER
        self.limits: Limits | None = None
        self.restart()

    def restart(self) -> None:
        """Forget calls, callers and windows; holds and refusals stay. Used in a forked process."""
        self.lock = threading.RLock()  # the garbage collector may close a generator at any line
        self._windows: dict[str, KnownWindow] = {}
        self._in_flight: set[Permit] = set()
        self._lost: deque[float] = deque(maxlen=_REMEMBERED)
        self._losses_in_a_row = 0
        self._width = 1  # calls at once: grows while no other process seems to use the key
        self._others_until = -NEVER
        self._queue: OrderedDict[Waiter, None] = OrderedDict()

    # Waiting for a slot

    def enter(self, waiter: Waiter) -> None:
        """Join the queue."""
        self._queue[waiter] = None

    def held_until(self, now: float) -> float:
        """The time before which nothing is sent: a refusal, a ban, a used-up window."""
        spent = [self._end(window) for window in self._windows.values() if window.remaining <= 0]
        return max([self._hold_until, self._ban_guard.resumes_at(now), *spent])

    def ample_at(self) -> float:
        """When each window has more than half its limit left, in proportion to the time until its end."""
        return max([window.ample_at() for window in self._windows.values()], default=-NEVER)

    def is_cautious(self, now: float) -> bool:
        """Whether all wait since another refusal might bring a ban nearer, with calls left or not."""
        return self._ban_guard.resumes_at(now) >= self.held_until(now)

    def opens_at(self, waiter: Waiter, now: float) -> float:
        """When the caller may send: now if not later than `now`; NEVER while an answer must come first."""
        held = self.held_until(now)
        if held > now:
            return held
        if self._first() is not waiter:
            return NEVER
        ended = [end for end in map(self._end, self._windows.values()) if end <= now]
        if ended or not self._windows:
            return self._probe_at(max(ended, default=-NEVER), now)
        return self._room_at(now)

    def take(self, permit: Permit, waiter: Waiter, now: float) -> None:
        """Leave the queue to send one call now."""
        permit.sent_at = now
        self._in_flight.add(permit)
        for window in self._windows.values():
            window.sent()
        self._leave(waiter)

    def _leave(self, waiter: Waiter) -> None:
        self._queue.pop(waiter, None)
        self._wake_first()

    def _probe_at(self, ended: float, now: float) -> float:
        """When to send the one call that finds out what a new window has."""
        return NEVER if any(permit.sent_at >= ended for permit in self._answered_soon()) else now

    def _room_at(self, now: float) -> float:
        """Never more calls at once than remain; a lost one may have been counted."""
        uncertain = len(self._in_flight) + len(self._lost)
        full = [self._end(window) for window in self._windows.values() if window.remaining <= uncertain]
        if active := len(self._answered_soon()):
            if full or active >= self._width:
                return min(full, default=NEVER)
        elif full and not self._ban_guard.may_risk_refusal(now):
            return max(full)
        if self._others_until > now:
            slack = _OPTIMISM if self._ban_guard.may_risk_refusal(now) else 0.0
            used_up = [
                self._end(window)
                for window in self._windows.values()
                if window.left_at(now) + slack * window.limit < 1
            ]
            return max(used_up, default=now)
        return now

    def _answered_soon(self) -> list[Permit]:
        return [permit for permit in list(self._in_flight) if not permit.waits]

    def _end(self, window: KnownWindow) -> float:
        jitter = window.jitter * _JITTER_SECONDS if self._others_until > window.ends_at else 0.0
        return window.ends_at + jitter

    def _first(self) -> Waiter | None:
        while True:
            with suppress(RuntimeError):  # the garbage collector has just closed a waiting call
                return next(iter(self._queue), None)

    def _wake_first(self) -> None:
        if waiter := self._first():
            waiter.wake()

    def _wake_all(self) -> None:
        for waiter in list(self._queue):
            waiter.wake()

    def reason(self, now: float) -> ApiError | None:
        """The answer for which all wait now, if it is one."""
        return self._reason if self._hold_until > now else None

    def should_log_wait(self, now: float, seconds: float) -> bool:
        """Whether the log has a line for a wait that ends now: none did for `seconds`."""
        if now - self._waits_logged_at < seconds:
            return False
        self._waits_logged_at = now
        return True

    # The outcome of a call

    def answered(self, permit: Permit, limits: Limits, now: float) -> None:
        """An answer with limits came; `refused` reports a refusal besides."""
        self._in_flight.discard(permit)
        self._losses_in_a_row = 0
        while self._lost and self._lost[0] <= permit.sent_at:  # counted in this answer, or never
            self._lost.popleft()
        self.limits = limits
        others = [self._learn(window, permit, now) for window in limits.windows]
        named = {window.name for window in limits.windows}  # without a valid key: the address's window
        self._windows = {name: window for name, window in self._windows.items() if name in named}
        if any(others):
            self._others_until = now + SPAN_SECONDS
            self._width = 1
        elif self._others_until <= now:
            self._width += 1
        if any(window.remaining <= 0 for window in limits.windows):
            self._wake_all()
        self._wake_first()

    def passed(self, permit: Permit) -> None:
        """The call was not refused by a limit."""
        self._ban_guard.passed(permit.sent_at)

    def refused(self, now: float) -> None:
        """A limit refused the call."""
        self._ban_guard.refused(now)
        self._width = 1

    def hold(self, until: float, reason: ApiError | None) -> None:
        """Send nothing before this time."""
        if until > self._hold_until:
            self._hold_until, self._reason = until, reason
        self._wake_all()

    def withdrawn(self, permit: Permit) -> None:
        """Nothing was sent."""
        self._in_flight.discard(permit)
        self._wake_first()

    def answered_without_limits(self, permit: Permit, now: float) -> None:
        """An answer without limits came, such as a proxy's: the call may have been counted."""
        self._in_flight.discard(permit)
        self._losses_in_a_row = 0
        self._lost.append(now)
        self._wake_first()

    def abandoned(self, permit: Permit, waiter: Waiter, now: float) -> None:
        """The caller gave up. A call under way may have been counted, or refused.

        An interrupt can come anywhere: the caller may be in the queue, under way, both, or neither.
        """
        if permit in self._in_flight:
            self._unanswered(permit, now)
        self._leave(waiter)

    def _unanswered(self, permit: Permit, now: float) -> None:
        self._in_flight.discard(permit)
        self._ban_guard.unanswered(now)
        self._lost.append(now)
        self._wake_first()

    def lost(self, permit: Permit, now: float) -> None:
        """No answer came, so the service may be in trouble: after several in a row all callers pause."""
        if not self._lost or permit.sent_at >= self._lost[-1]:  # not one of many that were lost at once
            self._losses_in_a_row += 1
        self._unanswered(permit, now)
        if self._losses_in_a_row >= _LOSSES_BEFORE_PAUSE:
            pause = min(_PAUSE_MAX_SECONDS, 0.5 * 2.0 ** min(self._losses_in_a_row - 1, _DOUBLINGS))
            self.hold(now + self._random() * pause, None)

    def _learn(self, seen: Window, permit: Permit, now: float) -> bool:
        """Whether the answer shows that another process uses the key."""
        known = self._windows.get(seen.name)
        unsettled = len(self._in_flight) + len(self._lost)
        if known is not None and known.is_later_than(seen) and permit.sent_at < known.ends_at:
            return False
        if known is not None and known.is_same(seen):
            others = known.spent_by_others(seen.remaining)
            lower = seen.remaining < known.remaining
            known.learn(seen, now)
            if lower:
                known.rebase(unsettled)
            return others
        self._windows[seen.name] = KnownWindow(seen, now, self._random(), unsettled)
        # Only the window that this process opened is known from its beginning.
        begun = known is not None and known.limit == seen.limit and known.ends_at <= now
        return begun and seen.remaining < seen.limit - unsettled - 1
