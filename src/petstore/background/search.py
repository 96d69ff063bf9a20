"""Keeps the index of searches up to date. Any process may; what several do at once is done once."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.transactions.search import Search

_PAUSE_SECONDS = 1.0
_AFTER_FAULT_SECONDS = 30.0


async def run(search: Search, clock: Clock) -> None:
    """Follow the journal until cancelled. A new index takes at most half of a processor."""
    while True:
        began, pause = clock.monotonic(), _AFTER_FAULT_SECONDS
        with suppress(StoreUnavailable):
            is_behind = await search.step()
            pause = clock.monotonic() - began if is_behind else _PAUSE_SECONDS
        await asyncio.sleep(pause)
