"""The count in the background: when it runs, and that no page waits for it."""

from __future__ import annotations

import asyncio

import pytest

from petstore.console.stocktaking import Counted, Stocktaking
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


async def look(stocktaking: Stocktaking) -> Counted | None:
    """What is shown; a count that this look began is under way then."""
    shown = await stocktaking.look()
    await asyncio.sleep(0)
    return shown


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def stocktaking(store: SlowStore, clock: ManualClock) -> Stocktaking:
    return Stocktaking(store, clock)


async def test_nothing_is_counted_unless_somebody_looks(store: SlowStore, stocktaking: Stocktaking) -> None:
    """The first look begins a count, and shows that there is none yet; others join it."""
    assert store.counts == 0
    assert await look(stocktaking) is None
    assert await look(stocktaking) is None
    assert store.counts == 1
    await stocktaking.close()


async def test_the_pause_is_twenty_times_the_count(
    store: SlowStore, stocktaking: Stocktaking, clock: ManualClock
) -> None:
    """A count of two seconds is followed by one at 40 s at the earliest, so that it takes 5 % of a core."""
    began_ms = clock.now_ms()
    await look(stocktaking)
    clock.advance(2)
    await store.end()
    clock.advance(39)
    latest = await look(stocktaking)
    assert latest is not None
    assert (latest.totals, latest.at_ms, store.counts) == (TOTALS, began_ms, 1)
    clock.advance(1)
    await look(stocktaking)
    assert store.counts == 2
    await stocktaking.close()


async def test_a_quick_count_runs_every_five_seconds(
    store: SlowStore, stocktaking: Stocktaking, clock: ManualClock
) -> None:
    """Not at each look, however many look."""
    await look(stocktaking)
    await store.end()
    clock.advance(4)
    await look(stocktaking)
    assert store.counts == 1
    clock.advance(1)
    await look(stocktaking)
    assert store.counts == 2
    await stocktaking.close()


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), RuntimeError("odd")])
async def test_a_failed_count_keeps_the_last_one(
    store: SlowStore, stocktaking: Stocktaking, clock: ManualClock, error: Exception
) -> None:
    """It says that it failed, and the next one is tried as always."""
    await look(stocktaking)
    await store.end()
    clock.advance(5)
    before = await look(stocktaking)
    await store.end(error)
    assert (stocktaking.failed, await look(stocktaking)) == (True, before)
    clock.advance(5)
    await look(stocktaking)
    await store.end()
    assert (stocktaking.failed, store.counts) == (False, 3)


async def test_a_stop_does_not_wait(store: SlowStore, stocktaking: Stocktaking) -> None:
    """A count that is under way is given up, and none is begun."""
    await look(stocktaking)
    await stocktaking.close()
    await look(stocktaking)
    assert (store.cancelled, store.counts) == (True, 1)
