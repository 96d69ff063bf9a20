"""Waiting for something that happens soon, without a guess how soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count

PATIENCE_SECONDS = 20.0  # that a test waits for what happens soon
_LOOK_AGAIN_SECONDS = (0.02, 0.1)  # at first, and when it takes longer: a look costs the processor too
_TURNS = 100  # of the event loop, before `until` leaves the processor to others between two looks


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until the condition holds; TimeoutError when it never does."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for turn in count():
            if condition():
                return
            await asyncio.sleep(0 if turn < _TURNS else 0.001)


def pause(seconds: float) -> None:
    """Hold everything up, the event loop too, as a busy machine does."""
    time.sleep(seconds)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Look again and again until the condition of another process holds, without an event loop."""
    began, (first, last) = time.monotonic(), _LOOK_AGAIN_SECONDS
    while not condition():
        waited = time.monotonic() - began
        assert waited < PATIENCE_SECONDS, f"waited in vain for {what}"
        time.sleep(min(max(first, waited / 10), last))
