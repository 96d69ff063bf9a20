"""The client through schedules of limits, bans, outages and lost answers, on a steered clock.

The long campaign: python -m verification.torture client --seed 1 --rounds 10000
"""

from __future__ import annotations

import pytest

from tests.support.report import Report
from verification.simulation.callers.checks import play

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [100])
def test_it_is_never_banned_doubles_nothing_and_finishes_in_time(seed: int) -> None:
    """Whatever the schedule: no ban of its own doing; no animal or order twice; every call succeeds that the
    quota allows within its budget; in calm weather none waits longer than 1 s while there is room for it."""
    report = Report()
    play(range(seed, seed + 20), report)
    assert report.faults == []
