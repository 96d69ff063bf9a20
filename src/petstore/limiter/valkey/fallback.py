"""What decides during an outage of the shared counters: this process's own, for its share of every limit.

Each of N processes admits at most a limit's Nth part (at least one request) in any 60 seconds, on top of what
was admitted elsewhere. So no window of the shared counters, whenever it opened, has more than one share of
each process, however often they are lost. What was admitted is carried into them afterwards.
"""

from __future__ import annotations

from collections import deque

import msgspec

from petstore.core.clock import Clock
from petstore.core.durations import DAY_SECONDS, MINUTE_MS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.decision import Decision
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import NoVersions
from petstore.limiter.memory import MemoryLimiter

# More accounts than this are not carried: they have less than a request each to give back, on average.
_PENDING_MAX = 100_000
_NOTHING_USED = AccountWindows()


class _Moment:
    """A clock that stands still while one request is decided."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.monotonic = clock.monotonic
        self.ms = clock.now_ms()

    def now_ms(self) -> int:
        return self.ms

    def go_on(self) -> int:
        self.ms = self._clock.now_ms()
        return self.ms


class _LastMinute:
    """How many requests of an account were admitted in each of the last 60 seconds that had any."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()
        self._used = 0

    def add(self, now_ms: int) -> None:
        """One more; `window` was asked at the same moment."""
        second_ms, count = now_ms - now_ms % SECOND_MS, 1
        if self._seconds and self._seconds[-1][0] == second_ms:
            count += self._seconds.pop()[1]
        self._seconds.append((second_ms, count))
        self._used += 1

    def window(self, now_ms: int) -> tuple[int, int]:
        """When the oldest of them opened, and how many they are: a window that ends when the oldest does."""
        seconds = self._seconds
        while seconds and now_ms - seconds[0][0] >= MINUTE_MS:
            self._used -= seconds.popleft()[1]
        if seconds and seconds[-1][0] > now_ms:  # the clock was set back: what lies ahead was now
            seconds.clear()
            seconds.append((now_ms - now_ms % SECOND_MS, self._used))
        if not seconds:
            return _NOTHING_USED.minute_opened_ms, 0
        return seconds[0][0], self._used


class FallbackLimiter:
    """Counters that outlive an outage, so that a second one does not begin anew."""

    def __init__(self, clock: Clock, policy: BanPolicy, processes: int) -> None:
        self._processes = processes
        self._moment = _Moment(clock)
        self._windows: dict[int, AccountWindows] = {}
        state = LimiterState(self._windows)
        self._limiter = MemoryLimiter(self._moment, policy, NoVersions(), state)
        self._minutes: dict[int, _LastMinute] = {}
        self._swept_ms = self._moment.ms
        self._pending: dict[int, AccountWindows] = {}

    async def take(self, caller: Caller) -> Decision:
        """One request, by this process's share. Versions are unknown.

        Its minute resets when the oldest of the requests that it counts is 60 seconds old.
        """
        share_of_limits = msgspec.structs.replace(
            caller,
            per_minute=max(1, caller.per_minute // self._processes),
            per_day=max(1, caller.per_day // self._processes),
        )
        now_ms = self._moment.go_on()
        minute = self._minutes.get(caller.account_id)
        if minute is None:
            minute = self._minutes[caller.account_id] = _LastMinute()
        used = self._windows.setdefault(caller.account_id, AccountWindows())
        used.minute_opened_ms, used.minute_used = minute.window(now_ms)
        decision = self._limiter.try_take(share_of_limits)
        assert decision is not None
        if decision.allowed:
            minute.add(now_ms)
            self._note(caller.account_id, now_ms, decision)
        return decision

    def _note(self, account_id: int, now_ms: int, decision: Decision) -> None:
        """Count what is to be carried: in a minute and on the day in which it was admitted."""
        noted = self._pending.get(account_id)
        if noted is None:
            if len(self._pending) >= _PENDING_MAX:
                return
            noted = self._pending[account_id] = AccountWindows()
        if not 0 <= now_ms - noted.minute_opened_ms < MINUTE_MS:
            noted.minute_opened_ms, noted.minute_used = now_ms - now_ms % SECOND_MS, 0
        number = decision.day_reset_at // DAY_SECONDS - 1
        if noted.day != number:
            noted.day, noted.day_used = number, 0
        noted.minute_used += 1
        noted.day_used += 1

    @property
    def has_pending(self) -> bool:
        """Admissions of an outage that Valkey has not counted yet; usually there are none."""
        return bool(self._pending)

    def take_pending(self, account_id: int) -> AccountWindows | None:
        """Remove and return the pending admissions of an account."""
        return self._pending.pop(account_id, None)

    def restore_pending(self, account_id: int, pending: AccountWindows) -> None:
        """Put back what `take_pending` gave: Valkey did not count it."""
        noted = self._pending.setdefault(account_id, pending)
        if noted is pending:
            return
        if abs(noted.minute_opened_ms - pending.minute_opened_ms) < MINUTE_MS:
            noted.minute_opened_ms = min(noted.minute_opened_ms, pending.minute_opened_ms)
            noted.minute_used += pending.minute_used
        if noted.day == pending.day:
            noted.day_used += pending.day_used

    def forget(self) -> None:
        """Let go of what can't matter any more; to be called now and then."""
        self._limiter.drain()
        now_ms = self._moment.go_on()
        if abs(now_ms - self._swept_ms) >= MINUTE_MS:
            self._swept_ms = now_ms
            for account, minute in list(self._minutes.items()):
                if not minute.window(now_ms)[1]:
                    del self._minutes[account]
