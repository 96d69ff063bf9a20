"""Runs long work on a connection of its own in a thread, outside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import apsw

_T = TypeVar("_T")
_INTERRUPT_SECONDS = 0.05


async def in_thread(connection: apsw.Connection, work: Callable[[], _T], *, keeps_result: bool = False) -> _T:
    """The result of `work`; a cancellation interrupts what it does on `connection`.

    With `keeps_result`, work that was done before that is not taken for cancelled: it has committed. Raises
    the driver's errors.
    """
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            connection.interrupt()
            await asyncio.wait([running], timeout=_INTERRUPT_SECONDS)
        if running.exception() is None and keeps_result:
            return running.result()
        raise
