"""Client: petstore_client through schedules of limits, bans, outages and lost answers, on a steered clock.
It is never banned, doubles nothing, and finishes what the quota allows at the earliest moment.
"""

from __future__ import annotations

import itertools

from tests.support.report import Report
from verification.simulation.callers.campaign import play

_SCHEDULES_A_SERVICE = 100  # each takes days of simulated time, and some interfaces end in 2030


def run(report: Report, seed: int, seconds: float) -> None:
    """A schedule from each seed."""
    rounds = report.rounds(seed, seconds)
    while seeds := list(itertools.islice(rounds, 1)):
        play(itertools.chain(seeds, itertools.islice(rounds, _SCHEDULES_A_SERVICE - 1)), report)
