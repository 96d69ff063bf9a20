"""quota.decide against the model of the documented rules, for any history (I7, I8, I10)."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanState
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows
from tests.support.clock import ManualClock
from tests.support.histories import POLICY, Event, compare, histories, telling


class PureLimiter:
    """The arithmetic with the simplest records around it."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._windows: dict[int, AccountWindows] = {}
        self._bans: dict[int, BanState] = {}

    async def take(self, caller: Caller) -> Decision:
        used = self._windows.setdefault(caller.account_id, AccountWindows())
        ban = self._bans.setdefault(caller.key_id, BanState())
        return decide(used, ban, caller, POLICY, self._clock.now_ms())

    async def restart(self) -> None:
        """Nothing: that is the point."""


@telling
@given(events=histories())
@settings(max_examples=100, deadline=None)
def test_the_arithmetic_decides_as_the_rules_say(events: list[Event]) -> None:
    """Requests, plan changes, pardons and clock steps in any order: every Decision is the model's."""
    clock = ManualClock()
    limiter = PureLimiter(clock)
    asyncio.run(compare(events, clock, limiter.take, limiter.restart))
