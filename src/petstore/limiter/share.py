"""What decides during an outage of the shared counters: this process's own, for its share of every limit.

Each of N processes admits at most a limit's Nth part (at least one request) in each window, on top of what
was admitted before the outage. What it admitted is carried into the shared counters afterwards.
"""

from __future__ import annotations

import msgspec

from petstore.clock import Clock
from petstore.decisions import DAY_SECONDS, Decision
from petstore.keys import Grant
from petstore.limiter.memory import MemoryLimiter
from petstore.quota import SECOND_MS, BanPolicy
from petstore.usage import AccountWindows
from petstore.versions import NoVersions

# More accounts than this are not carried: they have less than a request each to give back, on average.
_CARRIED_MAX = 100_000


class LocalShare:
    """Counters that outlive an outage, so that a second one on the same day does not begin anew."""

    def __init__(self, clock: Clock, policy: BanPolicy, processes: int) -> None:
        self._processes = processes
        self._limiter = MemoryLimiter(clock, policy, NoVersions())
        self._uncarried: dict[int, AccountWindows] = {}

    async def take(self, grant: Grant) -> Decision:
        """One request, by this process's share. Versions are unknown."""
        share = msgspec.structs.replace(
            grant,
            per_minute=max(1, grant.per_minute // self._processes),
            per_day=max(1, grant.per_day // self._processes),
        )
        decision = await self._limiter.take(share)
        assert decision is not None
        if decision.allowed:
            self._note(grant.account_id, decision)
        return decision

    def _note(self, account_id: int, decision: Decision) -> None:
        """Count what is to be carried: in the minute and on the day in which it was admitted."""
        noted = self._uncarried.get(account_id)
        if noted is None:
            if len(self._uncarried) >= _CARRIED_MAX:
                return
            noted = self._uncarried[account_id] = AccountWindows()
        opened_ms = (decision.minute_reset_at - 60) * SECOND_MS
        if noted.minute_opened_ms != opened_ms:
            noted.minute_opened_ms, noted.minute_used = opened_ms, 0
        number = decision.day_reset_at // DAY_SECONDS - 1
        if noted.day != number:
            noted.day, noted.day_used = number, 0
        noted.minute_used += 1
        noted.day_used += 1

    @property
    def is_carried(self) -> bool:
        """Whether nothing is left to carry: the usual state."""
        return not self._uncarried

    def carry(self, account_id: int) -> AccountWindows | None:
        """What this account has left here; it is the caller's now."""
        return self._uncarried.pop(account_id, None)

    def put_back(self, account_id: int, uncarried: AccountWindows) -> None:
        """It was not carried after all."""
        noted = self._uncarried.setdefault(account_id, uncarried)
        if noted is uncarried:
            return
        if noted.minute_opened_ms == uncarried.minute_opened_ms:
            noted.minute_used += uncarried.minute_used
        if noted.day == uncarried.day:
            noted.day_used += uncarried.day_used

    def forget(self) -> None:
        """Let go of what can't matter any more; to be called now and then."""
        self._limiter.drain()
