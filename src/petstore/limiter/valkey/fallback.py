"""The limiter during an outage of Valkey: this process counts alone, for its part of every limit.

Each of N processes admits at most an Nth of a limit (at least one request) in any time as long as the window,
or on the UTC day, on top of what was admitted elsewhere. So no window in Valkey, whenever it opened, has more
than one such part of each process, however often Valkey is lost. Valkey counts these admissions afterwards:
they are pending until then.
"""

from __future__ import annotations

from collections import deque

import msgspec

from petstore.core.clock import Clock
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.decision import Decision
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.windows import AccountWindows, openings
from petstore.core.versions import NO_VERSIONS, NoVersions
from petstore.limiter.memory import MemoryLimiter

# More accounts than this have no pending counts: each then has less than a request on average.
_PENDING_MAX = 100_000
# Windows that open with a request may have opened at any time: the last requests count, whenever they were.
_SLIDING = {index: kind.length_ms for index, kind in enumerate(WINDOWS) if kind.opens_ms < kind.length_ms}


class _Recent:
    """The requests of an account that were admitted in the last `length_ms`, by second."""

    def __init__(self, length_ms: int) -> None:
        self._length_ms = length_ms
        self._seconds: deque[tuple[int, int]] = deque()
        self._used = 0

    def add(self, now_ms: int) -> None:
        """Count one request. Call `window` with the same time first."""
        second_ms, count = now_ms - now_ms % SECOND_MS, 1
        if self._seconds and self._seconds[-1][0] == second_ms:
            count += self._seconds.pop()[1]
        self._seconds.append((second_ms, count))
        self._used += 1

    def window(self, now_ms: int) -> tuple[int, int]:
        """The second of the oldest request, in ms, and the number of all: the window ends with the oldest."""
        seconds = self._seconds
        while seconds and now_ms - seconds[0][0] >= self._length_ms:
            self._used -= seconds.popleft()[1]
        if seconds and seconds[-1][0] > now_ms:  # the clock was set back: count all of them as of now
            seconds.clear()
            seconds.append((now_ms - now_ms % SECOND_MS, self._used))
        if not seconds:
            return 0, 0
        return seconds[0][0], self._used


class FallbackLimiter:
    """The limiter of an outage. Its counters outlive it: a second one soon after admits nothing more.

    `pending`: by account, the admissions of an outage that Valkey has not counted yet.
    """

    def __init__(self, clock: Clock, policy: BanPolicy, processes: int) -> None:
        self._clock = clock
        self._processes = processes
        self._windows: dict[int, AccountWindows] = {}
        self._limiter = MemoryLimiter(clock, policy, NoVersions(), LimiterState(self._windows))
        self._recent: dict[int, dict[int, _Recent]] = {}  # by account, then by index of the window
        self._swept_ms = clock.now_ms()
        self.pending: dict[int, AccountWindows] = {}

    def take(self, caller: Caller) -> Decision:
        """Take one request from this process's part of the limits. Versions are unknown.

        A window that opens with a request resets when the oldest request that it counts leaves it.
        """
        now_ms = self._clock.now_ms()
        part, recent = self._part_of(caller, now_ms)
        decision = self._limiter.take_at(part, None, NO_VERSIONS, now_ms)
        assert decision is not None  # without a cached version there always is one
        if decision.allowed:
            for requests in recent.values():
                requests.add(now_ms)
            self._add_pending(caller.account_id, now_ms)
        return decision

    def peek(self, caller: Caller) -> Decision:
        """What is left of this process's part."""
        now_ms = self._clock.now_ms()
        return self._limiter.peek_at(self._part_of(caller, now_ms)[0], NO_VERSIONS, now_ms)

    def _part_of(self, caller: Caller, now_ms: int) -> tuple[Caller, dict[int, _Recent]]:
        """The caller with this process's part of its limits, and the requests of its windows."""
        parts = tuple(max(1, limit // self._processes) for limit in caller.limits)
        recent = self._recent.get(caller.account_id)
        if recent is None:
            recent = {index: _Recent(length_ms) for index, length_ms in _SLIDING.items()}
            self._recent[caller.account_id] = recent
        used = self._windows.setdefault(caller.account_id, AccountWindows())
        opened, counts = list(used.openings.opened_ms), list(used.used)
        for index, requests in recent.items():
            opened[index], counts[index] = requests.window(now_ms)
        used.openings, used.used = openings(*opened), tuple(counts)
        return msgspec.structs.replace(caller, limits=parts), recent

    def _add_pending(self, account_id: int, now_ms: int) -> None:
        pending = self.pending.get(account_id)
        if pending is None:
            if len(self.pending) >= _PENDING_MAX:
                return
            pending = self.pending[account_id] = AccountWindows()
        opened, counts = list(pending.openings.opened_ms), list(pending.used)
        for index, kind in enumerate(WINDOWS):
            if not 0 <= now_ms - opened[index] < kind.length_ms:
                opened[index], counts[index] = now_ms - now_ms % kind.opens_ms, 0
            counts[index] += 1
        pending.openings, pending.used = openings(*opened), tuple(counts)

    def restore_pending(self, account_id: int, pending: AccountWindows) -> None:
        """Put back what was taken from `pending`: Valkey did not count it."""
        later = self.pending.setdefault(account_id, pending)
        if later is pending:
            return
        opened, counts = list(later.openings.opened_ms), list(later.used)
        for index, opened_ms in enumerate(pending.openings.opened_ms):
            if abs(opened[index] - opened_ms) < WINDOWS[index].length_ms:
                opened[index] = min(opened[index], opened_ms)
                counts[index] += pending.used[index]
        later.openings, later.used = openings(*opened), tuple(counts)

    def sweep(self) -> None:
        """Remove records that no longer matter; call it about once a second."""
        self._limiter.drain()
        now_ms = self._clock.now_ms()
        if abs(now_ms - self._swept_ms) >= MINUTE_MS:
            self._swept_ms = now_ms
            for account, recent in list(self._recent.items()):
                if not max(requests.window(now_ms)[1] for requests in recent.values()):
                    del self._recent[account]
