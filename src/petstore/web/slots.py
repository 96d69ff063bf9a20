"""Slots of event-loop time for work that takes milliseconds: other requests run between two of them."""

from __future__ import annotations

import asyncio

from petstore.core.clock import Clock

# Upper bound, for a process that was suspended in the middle of a slot.
_REST_MAX_SECONDS = 0.02


class Slots:
    """One slot at a time, first come, first served. After each a rest of the same length, for other requests.

    A slot begins when `wait` returns and ends when its owner next waits for something.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free = asyncio.Lock()

    async def wait(self) -> None:
        """Wait for a slot. It ends by itself."""
        await self._free.acquire()
        # Runs after the slot: nothing else runs before the owner waits.
        asyncio.get_running_loop().call_soon(self._rest, self._clock.monotonic())

    def _rest(self, began: float) -> None:
        took = self._clock.monotonic() - began
        asyncio.get_running_loop().call_later(min(took, _REST_MAX_SECONDS), self._free.release)
