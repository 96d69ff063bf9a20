"""Keeps the index of searches up to date. Any process may; what several do at once is done once."""

from __future__ import annotations

import asyncio

import structlog

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.transactions.search import Search

_log = structlog.get_logger("petstore.jobs")
_PAUSE_SECONDS = 1.0
_AFTER_FAULT_SECONDS = 30.0


async def run(search: Search, clock: Clock) -> None:
    """Follow the journal until cancelled. A new index takes at most half of a processor."""
    fault = ""
    while True:
        began, pause = clock.monotonic(), _AFTER_FAULT_SECONDS
        try:
            is_behind = await search.step()
        except StoreUnavailable as error:
            if str(error) != fault:
                _log.warning("search index not written", reason=str(error))
            fault = str(error)
        else:
            fault, pause = "", clock.monotonic() - began if is_behind else _PAUSE_SECONDS
        await asyncio.sleep(pause)
