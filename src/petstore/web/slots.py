"""Slots for work that takes milliseconds: other requests run between two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from petstore.core.clock import Clock

# Upper bound, for a process that was suspended in the middle of a slot.
_REST_MAX_SECONDS = 0.02


class Slots:
    """One slot at a time, first come, first served. After each a rest of the same length, for other requests.

    One begins when `wait` returns and ends when its owner next waits for something; `run` is one in a thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "petstore-pages")  # its own: no upload holds up a page

    async def wait(self) -> None:
        """Wait for a slot. It ends by itself."""
        await self._free.acquire()
        # Runs after the slot: nothing else runs before the owner waits.
        asyncio.get_running_loop().call_soon(self._rest, self._clock.monotonic())

    async def run(self, work: Callable[[], object]) -> None:
        """Do work, while the event loop serves others. Raises what the work raises."""
        await self._free.acquire()
        began = self._clock.monotonic()
        try:
            working = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError:  # the machine has no room for a thread now, but later
            self._free.release()
            raise
        working.add_done_callback(lambda _: self._rest(began))
        await asyncio.shield(working)  # the slot ends with the work, also where nobody waits for it any more

    def _rest(self, began: float) -> None:
        took = self._clock.monotonic() - began
        asyncio.get_running_loop().call_later(min(took, _REST_MAX_SECONDS), self._free.release)
