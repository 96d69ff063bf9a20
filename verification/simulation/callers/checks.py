"""Runs of many schedules, and what must hold after each, whatever it was. Each fault is a sentence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from petstore_client import KeyBanned, RateLimited

from tests.support.report import Report
from verification.simulation.callers.origin import Origin, with_origin
from verification.simulation.callers.run import Run
from verification.simulation.callers.schedule import draw
from verification.simulation.virtual import EPOCH_MS, VirtualLoop

LATE_SECONDS = 1.0
_DAY_SECONDS = 86_400
_DAYS_APART = 3  # longer than any schedule
_FIRST_MIDNIGHT = 10  # VirtualClock begins ten seconds before one


def faults(run: Run) -> list[str]:
    """Every promise that was broken."""
    return [*_bans(run), *_doubled(run), *_unfinished(run), *_late(run)]


def _bans(run: Run) -> Iterator[str]:
    """Every ban since the run began is the caller's: others with its key stopped before."""
    began = run.origin.ban_of(run.key_id).level - run.level_before
    if began > 0:
        yield f"the key was banned {began} times"


def _doubled(run: Run) -> Iterator[str]:
    """Every animal and order is there once if its call succeeded, and not twice in any case."""
    kept = {"create": run.origin.animals(run.category), "place": run.origin.orders(run.category)}
    for made in run.made:
        if made.kind not in kept:
            continue
        count = kept[made.kind][made.name]
        error = made.error
        if count > 1 or (count == 0 and error is None):
            yield f"{made.name} is there {count} times"
        if count and error is not None and not error.outcome_unknown:
            yield f"{made.name} failed as if nothing had changed, but is there: {error}"


def _unfinished(run: Run) -> Iterator[str]:
    """A call fails only by a limit that stays closed until its budget is over."""
    for made in run.made:
        if made.error is None:
            continue
        ends = made.began + run.schedule.budget
        if not isinstance(made.error, RateLimited | KeyBanned):
            yield f"{made.name} failed: {made.error!r}"
        elif made.quota_opens <= ends - LATE_SECONDS:
            yield f"{made.name} gave up {ends - made.quota_opens:.1f} s too early: {made.error}"
        elif made.ended > ends + LATE_SECONDS:
            yield f"{made.name} ended {made.ended - ends:.1f} s after its budget"


def _late(run: Run) -> Iterator[str]:
    """No task waits in a window for over 1 s in all while the window has room for it, in calm weather.

    The earliest possible moment of a request: when its task asks for it, and not before the end of a used-up
    window before. The waits of a task within one window add up, so its last request is bounded. The service
    tells ends in whole seconds: a caller knows one within a second of the answer, so the trips of that
    answer and of the first of the next window come on top.
    """
    if run.schedule.kind not in {"calm", "tight"}:
        return
    counts = Counter(tried.window for tried in run.tried)
    opens = {
        window: before / 1_000 + 60 - EPOCH_MS / 1_000
        for before, window in pairwise(sorted(counts))
        if counts[before] == run.schedule.per_minute
    }
    waited: defaultdict[tuple[str, int], float] = defaultdict(float)
    for tried in run.tried:
        earliest = max(tried.asked, opens.get(tried.window, 0.0))
        waited[tried.task, tried.window] += max(0.0, tried.sent - earliest)
    for (task, window), seconds in waited.items():
        if seconds > LATE_SECONDS + 3 * run.schedule.weather.round_trip:
            yield f"{task} waited {seconds:.2f} s in the window of {window} while there was room"


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
