"""Turns for what takes milliseconds of the event loop, so that no other request waits for several of them."""

from __future__ import annotations

import asyncio

from petstore.core.clock import Clock

# Where the process was stopped in the middle of a turn, the next one need not wait as long.
_REST_MAX_SECONDS = 0.02


class Turns:
    """One turn at a time, and after each a rest as long as it was, in which other requests have theirs.

    A turn is what its owner does from `next` until it waits for something. Who asks first is first.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free = asyncio.Lock()

    async def next(self) -> None:
        """Wait until it is the caller's turn; there is nothing to give back."""
        await self._free.acquire()
        # Runs after the turn: nothing else does before the owner waits.
        asyncio.get_running_loop().call_soon(self._rest, self._clock.monotonic())

    def _rest(self, began: float) -> None:
        took = self._clock.monotonic() - began
        asyncio.get_running_loop().call_later(min(took, _REST_MAX_SECONDS), self._free.release)
