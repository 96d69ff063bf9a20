"""Slots for work that takes milliseconds. Requests come between two: tests/console/test_guard.py."""

from __future__ import annotations

import asyncio
import threading

import pytest

from petstore.web.slots import Slots
from tests.support.clock import ManualClock
from tests.support.waiting import PATIENCE_SECONDS


async def test_after_a_slot_comes_a_rest_as_long(clock: ManualClock) -> None:
    """Pages take half of the event loop's time at most; a slot ends by itself."""
    slots, loop = Slots(clock), asyncio.get_running_loop()
    await slots.wait()
    for seconds, at_least in ((0.01, 0.009), (3_600, 0.019)):  # stopped for an hour: no rest of an hour
        clock.advance(seconds)
        began = loop.time()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await slots.wait()
        assert loop.time() - began > at_least


async def test_work_in_a_thread_leaves_the_event_loop_free(clock: ManualClock) -> None:
    """No other slot begins meanwhile, and one does after it, also when the work failed."""
    slots, may_end = Slots(clock), threading.Event()
    works = [asyncio.create_task(slots.run(lambda: may_end.wait(PATIENCE_SECONDS))) for _ in range(2)]
    following = asyncio.create_task(slots.wait())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(task.done() for task in (*works, following))
    may_end.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*works, following)
        with pytest.raises(ZeroDivisionError):
            await slots.run(lambda: 1 / 0)
        await slots.wait()


async def test_a_thread_that_can_not_begin_keeps_no_slot(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full machine fails one piece of work, and not all pages until a restart."""
    slots = Slots(clock)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError):
            await slots.run(lambda: None)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await slots.run(lambda: None)
        await slots.wait()


def refused(_thread: threading.Thread) -> None:
    """Refuse a thread as the system does."""
    raise RuntimeError("can't start new thread")
