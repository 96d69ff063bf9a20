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
# A look takes at most a hundredth of the time, however many accounts there are.
_PAUSE_BY_LOOK = 99


class FactRecorder:
    """The looks of one process at the saved counters and the keys of a store."""

    def __init__(self, facts: Facts, clock: Clock, removal_at_ms: int) -> None:
        """`removal_at_ms`: when the deprecated operation ends."""
        self._facts = facts
        self._clock = clock
        self._look_at_time = partial(facts.record_timed, removal_at_ms)
        self._state: object = None  # of the store at the last look

    async def run(self) -> None:
        """Record facts until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self.look, _COUNTED_SECONDS))
            group.create_task(self._repeat(self._look_at_time, _TIMED_SECONDS))

    async def look(self) -> None:
        """Record what the counters say, unless nothing was written since the last look."""
        state = await self._facts.state()
        if state != self._state:
            await self._facts.record_counted()
            self._state = state

    async def _repeat(self, look: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            began = self._clock.monotonic()
            with suppress(StoreUnavailable):
                await look()
            took = self._clock.monotonic() - began
            await asyncio.sleep(max(seconds, took * _PAUSE_BY_LOOK))
