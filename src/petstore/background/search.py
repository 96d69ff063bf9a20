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
# Pauses for each second of work: a new index is wanted soon, requests matter more than the newest names.
_REST_WHILE_MADE = 1
_REST = 19


async def run(search: Search, clock: Clock) -> None:
    """Follow the journal until cancelled, with at most a twentieth of a processor; with half of one while the
    index is made."""
    fault = ""
    while True:
        began, pause = clock.monotonic(), _AFTER_FAULT_SECONDS
        try:
            ahead = await search.step()
        except StoreUnavailable as error:
            if str(error) != fault:
                _log.warning("search index not written", reason=str(error))
            fault = str(error)
        else:
            fault, took = "", clock.monotonic() - began
            pause = took * (_REST_WHILE_MADE if ahead.walked else _REST) if ahead else _PAUSE_SECONDS
        await asyncio.sleep(pause)
