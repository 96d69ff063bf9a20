"""Waiting for something that happens soon, without a guess how soon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_PATIENCE_SECONDS = 20.0


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until the condition holds; TimeoutError when it never does."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0)
