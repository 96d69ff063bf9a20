"""The flusher: counters reach the counter store about once a second, and exactly at a clean stop."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import UsageChanges, UsageMeter
from petstore.limiter.memory import MemoryLimiter
from petstore.ops import flusher
from petstore.ops.flusher import CounterFlusher
from petstore.wiring.ops import run_until_closed
from tests.support.clock import ManualClock
from tests.support.disk import mounted_disk
from tests.support.service import open_shop
from tests.support.versions import SteeredVersions
from tests.support.waiting import until
from tests.support.windows import limits_of


class CounterStore:
    """Remembers what it was given; fails when told to."""

    def __init__(self) -> None:
        self.saved: list[tuple[LimiterState, UsageChanges]] = []
        self.fails: Exception | None = None
        self.failures = 0
        self.purges: list[int] = []

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        await self.try_write()
        await asyncio.sleep(0)
        self.saved.append((copy.deepcopy(state), copy.deepcopy(usage)))

    async def try_write(self) -> None:
        if self.fails is not None:
            self.failures += 1
            raise self.fails

    async def purge(self, now_ms: int) -> None:
        self.purges.append(now_ms)


class Counting:
    """A flusher with the limiter and the meter that it collects from."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.steps: list[Callable[[], None]] = []
        self.counters = CounterStore()
        self.meter = UsageMeter()
        self.limiter = MemoryLimiter(clock, BanPolicy(), SteeredVersions())
        self.flusher = CounterFlusher(
            limiter=self.limiter,
            meter=self.meter,
            save=self.counters.save,
            purge=self.counters.purge,
            try_write=self.counters.try_write,
            each_round=self.steps,
            clock=clock,
        )

    async def request(self) -> None:
        """One request of key 1, account 1."""
        decision = await self.limiter.take(Caller(1, 1, limits_of(60, 1_000)))
        assert decision is not None
        self.meter.count(1, 1, decision.now_ms, allowed=decision.allowed, deprecated=False)

    def sums(self) -> int:
        """Requests in all batches together."""
        return sum(day.requests for _, usage in self.counters.saved for day in usage.daily.values())


@pytest.fixture
def counting(clock: ManualClock) -> Counting:
    return Counting(clock)


class TestSave:
    """What changed goes to the counter store once."""

    async def test_without_changes_nothing_is_written(self, counting: Counting) -> None:
        """An idle service does not touch the disk."""
        await counting.flusher.save()
        assert counting.counters.saved == []

    async def test_windows_are_absolute_and_usage_is_added(self, counting: Counting) -> None:
        """Two batches: the windows' values, the counts since the batch before."""
        await counting.request()
        await counting.flusher.save()
        await counting.request()
        await counting.request()
        await counting.flusher.save()
        assert [state.windows[1].used[-1] for state, _ in counting.counters.saved] == [1, 3]
        assert counting.sums() == 3

    async def test_two_saves_at_once_count_once(self, counting: Counting) -> None:
        """The second has nothing left to save."""
        await counting.request()
        await asyncio.gather(counting.flusher.save(), counting.flusher.save())
        assert counting.sums() == 1

    async def test_what_could_not_be_saved_is_kept_for_the_next_time(self, counting: Counting) -> None:
        """Two failures, then everything at once."""
        counting.counters.fails = StoreUnavailable("busy")
        for _ in range(2):
            await counting.request()
            with pytest.raises(StoreUnavailable):
                await counting.flusher.save()
        counting.counters.fails = None
        await counting.request()
        await counting.flusher.save()
        assert len(counting.counters.saved) == 1
        assert (counting.sums(), counting.counters.saved[0][0].windows[1].used[-1]) == (3, 3)


class TestRun:
    """The loop of a running service."""

    @pytest.fixture(autouse=True)
    def _quickly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(flusher, "INTERVAL_SECONDS", 0.001)

    @pytest.mark.parametrize("error", [StoreUnavailable("busy"), ValueError("unexpected")])
    async def test_it_goes_on_after_a_failure(self, counting: Counting, error: Exception) -> None:
        """Foreseen or not, a failure is only the end of a round. The log has its begin and its end."""
        counting.counters.fails = error
        await counting.request()
        with capture_logs() as lines:
            running = asyncio.create_task(counting.flusher.run())
            await until(lambda: counting.counters.failures >= 3)
            counting.counters.fails = None
            await until(lambda: bool(counting.counters.saved))
            counting.flusher.stop()
            await running
        assert counting.sums() == 1
        assert [line["event"] for line in lines] == ["counters not saved yet", "counters saved again"]

    async def test_an_unexpected_failure_after_another_is_in_the_log_too(self, counting: Counting) -> None:
        """Each once, as /readyz says."""
        await counting.request()
        with capture_logs() as lines:
            running = asyncio.create_task(counting.flusher.run())
            for error in (ValueError("first"), KeyError("second")):
                counting.counters.fails, before = error, counting.counters.failures
                await until(lambda before=before: counting.counters.failures >= before + 2)  # type: ignore[misc]
            counting.flusher.stop()
            await running
        assert [str(line["exc_info"]) for line in lines] == ["first", "'second'"]

    @pytest.mark.parametrize("error", [StoreUnavailable("It is full."), ConfigurationError("It refuses.")])
    async def test_the_cause_is_shown_and_does_not_disturb_the_stop(
        self, counting: Counting, error: Exception
    ) -> None:
        """/readyz says why nothing is saved, also when the database's user lost a right; the stop goes on."""
        counting.counters.fails = error
        async with AsyncExitStack() as opened:
            run_until_closed(counting.flusher, opened)
            await until(lambda: counting.counters.failures >= 1)
            assert counting.flusher.trouble == f"not since the start: {error}"

    async def test_no_step_of_a_round_ends_it(self, counting: Counting) -> None:
        """What else is done in its rhythm may fail unforeseen: the others go on, and so does the saving."""
        done = []

        def fail() -> None:
            raise OSError("read-only")

        counting.steps[:] = [fail, lambda: done.append(1)]
        running = asyncio.create_task(counting.flusher.run())
        await counting.request()
        await until(lambda: bool(counting.counters.saved) and len(done) >= 2)
        counting.flusher.stop()
        await running
        assert counting.sums() == 1

    async def test_it_purges_once_a_minute(self, counting: Counting) -> None:
        """However the time of day is set: one that is wrong for a moment ends nothing."""
        rounds: list[int] = []
        counting.steps.append(lambda: rounds.append(len(rounds)))
        running = asyncio.create_task(counting.flusher.run())
        for number, year in enumerate((-365, 365)):
            counting.clock.set_by(year * 86_400)
            begun = len(rounds)
            await until(lambda: len(rounds) > begun + 1)  # noqa: B023
            assert len(counting.counters.purges) == number
            counting.clock.advance(60)
            await until(lambda: len(counting.counters.purges) == number + 1)  # noqa: B023
        counting.flusher.stop()
        await running
        assert len(counting.counters.purges) == 2


async def test_a_stop_in_the_middle_of_a_save_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is slow, a batch is on its way, and the service is told to stop: three requests are three."""
    monkeypatch.setattr(flusher, "INTERVAL_SECONDS", 0.001)
    at_the_disk, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        at_the_disk.set()
        go_on.wait(10)

    with mounted_disk() as disk:
        async with open_shop(tmp_path) as shop:
            before = shop.application.service.flusher
            for _ in range(3):
                await shop.ask("GET", "/v1/pets")
            disk.before = slow
            await until(at_the_disk.is_set)
            stopping = asyncio.create_task(shop.application.stop())
            for _ in range(10):
                await asyncio.sleep(0)
            go_on.set()
            await stopping
            disk.heal()
            await shop.application.start()
            assert shop.application.service.flusher is not before
            report = await shop.store.usage.report(shop.clock.now_ms(), 1)
            assert [(day.requests, day.refused) for day in report.days] == [(3, 0)]
            assert report.windows.used[-1] == 3
