"""The count in the background: when it runs, and that no page waits for it."""

from __future__ import annotations

import asyncio

import pytest

from petstore.console.statistics import Counted, Statistics
from petstore.core.errors import StoreUnavailable
from petstore.core.limits.usage import DailyUsage
from petstore.core.totals import Totals
from tests.support.clock import ManualClock

TOTALS = Totals({}, {}, {}, DailyUsage(0), 0, [], [])


class SlowStore:
    """A store whose count ends when the test says so."""

    def __init__(self) -> None:
        self.counts = 0
        self.cancelled = False
        self._ending: asyncio.Future[Totals] | None = None

    async def count(self, now_ms: int) -> Totals:
        self.counts += 1
        self._ending = asyncio.get_running_loop().create_future()
        try:
            return await self._ending
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def end(self, error: Exception | None = None) -> None:
        assert self._ending is not None
        if error is None:
            self._ending.set_result(TOTALS)
        else:
            self._ending.set_exception(error)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def look(statistics: Statistics) -> Counted | None:
    """What is shown; a count that this look began is under way then."""
    shown = await statistics.latest()
    await asyncio.sleep(0)
    return shown


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def statistics(store: SlowStore, clock: ManualClock) -> Statistics:
    return Statistics(store, clock)


async def test_nothing_is_counted_unless_somebody_looks(store: SlowStore, statistics: Statistics) -> None:
    """The first look begins a count, and shows that there is none yet; others join it."""
    assert store.counts == 0
    assert await look(statistics) is None
    assert await look(statistics) is None
    assert store.counts == 1
    await statistics.close()


async def test_the_pause_is_twenty_times_the_count(
    store: SlowStore, statistics: Statistics, clock: ManualClock
) -> None:
    """A count of two seconds is followed by one at 40 s at the earliest, so that it takes 5 % of a core."""
    began_ms = clock.now_ms()
    await look(statistics)
    clock.advance(2)
    await store.end()
    clock.advance(39)
    latest = await look(statistics)
    assert latest is not None
    assert (latest.totals, latest.at_ms, store.counts) == (TOTALS, began_ms, 1)
    clock.advance(1)
    await look(statistics)
    assert store.counts == 2
    await statistics.close()


async def test_a_quick_count_runs_every_five_seconds(
    store: SlowStore, statistics: Statistics, clock: ManualClock
) -> None:
    """Not at each look, however many look."""
    await look(statistics)
    await store.end()
    clock.advance(4)
    await look(statistics)
    assert store.counts == 1
    clock.advance(1)
    await look(statistics)
    assert store.counts == 2
    await statistics.close()


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), RuntimeError("odd")])
async def test_a_failed_count_keeps_the_last_one(
    store: SlowStore, statistics: Statistics, clock: ManualClock, error: Exception
) -> None:
    """It says that it failed, and the next one is tried as always."""
    await look(statistics)
    await store.end()
    clock.advance(5)
    before = await look(statistics)
    await store.end(error)
    assert (statistics.failed, await look(statistics)) == (True, before)
    clock.advance(5)
    await look(statistics)
    await store.end()
    assert (statistics.failed, store.counts) == (False, 3)


async def test_a_stop_does_not_wait(store: SlowStore, statistics: Statistics) -> None:
    """A count that is under way is given up, and none is begun."""
    await look(statistics)
    await statistics.close()
    await look(statistics)
    assert (store.cancelled, store.counts) == (True, 1)
