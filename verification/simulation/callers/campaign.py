"""Many schedules, each on a day of its own; a fresh service now and then."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.report import Report
from verification.simulation.callers.checks import faults
from verification.simulation.callers.origin import Origin, with_origin
from verification.simulation.callers.run import Run
from verification.simulation.callers.schedule import draw
from verification.simulation.virtual import VirtualLoop

_DAY_SECONDS = 86_400
_DAYS_APART = 3  # longer than any schedule
_FIRST_MIDNIGHT = 10  # VirtualClock begins ten seconds before one


def play(seeds: Iterable[int], report: Report) -> None:
    """A schedule from each seed, one after another in one service."""

    async def work(service: Origin, loop: VirtualLoop) -> None:
        for seed in seeds:
            schedule = draw(seed)
            day = (loop.time() // _DAY_SECONDS + _DAYS_APART) * _DAY_SECONDS + _FIRST_MIDNIGHT
            loop.leap_to(day + schedule.begins)
            run = Run(schedule, service, loop)
            await run.play()
            for fault in faults(run):
                report.fault(f"schedule {seed}, {schedule.kind}: {fault}")
            _count(run, report)

    with_origin(work)


def _count(run: Run, report: Report) -> None:
    report.counts["calls"] += len(run.made)
    report.counts["requests"] += len(run.network.sent)
    for sent in run.network.sent:
        if sent.fault:
            report.counts["faults met"] += 1
        if sent.code == "rate_limited":
            report.counts["refusals"] += 1
        if sent.code == "key_banned":
            report.counts["answers during a ban"] += 1
    report.counts["calls given up by their budget"] += sum(made.error is not None for made in run.made)
    report.most("strikes of 60", run.strikes)
