"""Batches of usage that are added up; tests/api/test_usage_sums.py counts them."""

from __future__ import annotations

from petstore.core.limits.usage import DailyUsage, UsageChanges


def test_batches_that_could_not_be_written_add_up() -> None:
    """Counts are summed, the last use is the later one."""
    earlier = UsageChanges({(1, 7): DailyUsage(7, 1, 2, 3)}, {10: 100, 11: 100})
    earlier.add(UsageChanges({(1, 7): DailyUsage(7, 10, 20, 30), (2, 7): DailyUsage(7, 5)}, {10: 200}))
    assert earlier == UsageChanges(
        {(1, 7): DailyUsage(7, 11, 22, 33), (2, 7): DailyUsage(7, 5)}, {10: 200, 11: 100}
    )


def test_what_is_added_later_does_not_reach_an_earlier_batch() -> None:
    """A batch that is being saved keeps its numbers."""
    later = UsageChanges({(1, 7): DailyUsage(7, 1)})
    total = UsageChanges()
    total.add(later)
    total.add(later)
    assert (total.daily[1, 7].requests, later.daily[1, 7].requests) == (2, 1)
