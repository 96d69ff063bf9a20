"""Records facts that change nothing else: bans, used-up days, keys that expire soon, calls of an operation
that ends. Any process may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.transactions.facts import Facts

_COUNTED_SECONDS = 5.0
_TIMED_SECONDS = 60.0
# The reads take at most a hundredth of the time, however many accounts there are.
_PAUSE_BY_READ = 99


class FactRecorder:
    """Records what one process finds in the saved counters and the keys of a store."""

    def __init__(self, facts: Facts, clock: Clock, removal_at_ms: int) -> None:
        """`removal_at_ms`: when the deprecated operation ends."""
        self._facts = facts
        self._clock = clock
        self._record_timed = partial(facts.record_timed, removal_at_ms)
        self._state: object = None  # the store's state when it was last read

    async def run(self) -> None:
        """Record facts until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self.record_counted, _COUNTED_SECONDS))
            group.create_task(self._repeat(self._record_timed, _TIMED_SECONDS))

    async def record_counted(self) -> None:
        """Record what the counters say, unless nothing was written since the last time."""
        state = await self._facts.state()
        if state != self._state:
            await self._facts.record_counted()
            self._state = state

    async def _repeat(self, record: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            began = self._clock.monotonic()
            with suppress(StoreUnavailable):
                await record()
            took = self._clock.monotonic() - began
            await asyncio.sleep(max(seconds, took * _PAUSE_BY_READ))
