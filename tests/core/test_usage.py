"""Usage as it is counted between two batches."""

from __future__ import annotations

from petstore.core.durations import DAY_MS
from petstore.core.limits.usage import DailyUsage, UsageChanges, UsageMeter

NOON = 20_000 * DAY_MS + DAY_MS // 2


def test_requests_refusals_and_deprecated_calls_are_counted_apart() -> None:
    """A refused call of the deprecated operation is both a refusal and such a call."""
    meter = UsageMeter()
    meter.count(1, 10, NOON, allowed=True, deprecated=False)
    meter.count(1, 11, NOON + 1, allowed=True, deprecated=True)
    meter.count(1, 10, NOON + 2, allowed=False, deprecated=True)
    meter.count(1, 10, NOON + 3, allowed=False, deprecated=False)
    assert meter.drain() == UsageChanges(
        {(1, 20_000): DailyUsage(20_000, requests=2, refused=2, deprecated=2)},
        {10: NOON + 3, 11: NOON + 1},
    )


def test_accounts_and_utc_days_are_counted_apart() -> None:
    """A millisecond before midnight is the day before."""
    meter = UsageMeter()
    midnight = 20_001 * DAY_MS
    meter.count(1, 10, midnight - 1, allowed=True, deprecated=False)
    meter.count(1, 10, midnight, allowed=True, deprecated=False)
    meter.count(2, 20, midnight, allowed=True, deprecated=False)
    assert sorted(meter.drain().daily) == [(1, 20_000), (1, 20_001), (2, 20_001)]


def test_a_batch_is_drained_once() -> None:
    """What was handed over is not counted again, nor changed afterwards."""
    meter = UsageMeter()
    meter.count(1, 10, NOON, allowed=True, deprecated=False)
    first = meter.drain()
    assert meter.drain() == UsageChanges()
    meter.count(1, 10, NOON, allowed=True, deprecated=False)
    assert first.daily[1, 20_000].requests == 1


def test_batches_that_could_not_be_written_add_up() -> None:
    """Counts are summed, the last use is the later one."""
    earlier = UsageChanges({(1, 7): DailyUsage(7, 1, 2, 3)}, {10: 100, 11: 100})
    earlier.add(UsageChanges({(1, 7): DailyUsage(7, 10, 20, 30), (2, 7): DailyUsage(7, 5)}, {10: 200}))
    assert earlier == UsageChanges(
        {(1, 7): DailyUsage(7, 11, 22, 33), (2, 7): DailyUsage(7, 5)}, {10: 200, 11: 100}
    )


def test_adding_copies() -> None:
    """What is added later does not reach into the batch that it came from."""
    later = UsageChanges({(1, 7): DailyUsage(7, 1)})
    total = UsageChanges()
    total.add(later)
    total.add(later)
    assert (total.daily[1, 7].requests, later.daily[1, 7].requests) == (2, 1)
