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
# Seconds of rest for each of work: a new index, or one that was left alone, is wanted soon; then requests
# matter more than the newest names.
_REST_AT_FIRST = 1
_REST = 19


async def run(search: Search, clock: Clock) -> None:
    """Follow the journal until cancelled: for half of the time until the index is up to date, then for a
    twentieth at most."""
    fault, rest = "", _REST_AT_FIRST
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
            if ahead is None:
                rest, pause = _REST, _PAUSE_SECONDS
            else:
                rest = _REST_AT_FIRST if ahead.building else rest
                pause = min(took * rest, _AFTER_FAULT_SECONDS)
        await asyncio.sleep(pause)
