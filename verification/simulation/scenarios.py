"""The questions, each a group of runs: what is promised of every run, and whether it was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from petstore.core.versions import LEASE_SECONDS
from verification.simulation.world import Outage, Result, Setup

_LIMITED = Setup(limited=True, requests=300.0, seconds=100.0, accounts=200)
_WRITTEN = Setup(writes=4.0, key_changes=1.0, deaths=0.005, accounts=50, pages=20)
_OUTAGES = (
    ("killed for 20 s", Outage("kill", 30.0, 20.0)),
    ("hanging for 20 s", Outage("hang", 30.0, 20.0)),
    ("back with older data", Outage("old", 30.0, 0.6)),
    ("emptied", Outage("empty", 30.0, 0.05)),
    ("emptied after 20 s", Outage("empty", 30.0, 20.0)),
    ("one process cut off", Outage("cut", 30.0, 20.0)),
)


class Run(msgspec.Struct, frozen=True):
    """`kept` says whether what is promised of this run was kept."""

    name: str
    setup: Setup
    kept: Callable[[Result], bool]


def _exact(result: Result) -> bool:
    """Whether nothing was over, under or stale, and nobody failed, as it must be where there is no outage."""
    faults = result.over + result.under + result.stale_pages + result.stale_callers + result.regressed
    return faults == 0 and result.failed == 0 and result.local == 0


def _bounded(result: Result) -> bool:
    """Nobody fails in an outage, a share for each process is the most, and nothing is stale."""
    stale = result.stale_pages + result.stale_callers
    return result.failed == 0 and result.minute_excess <= 1 and result.day_excess <= 1 and stale == 0


def _leased(result: Result) -> bool:
    """A writer that could not tell: what others show is at most a lease old."""
    return result.failed == 0 and result.oldest_seconds <= LEASE_SECONDS


def admission(seed: int, replicas: list[int]) -> Iterator[Run]:
    """Demand above the limits, minute and day, over a midnight."""
    for count in replicas:
        yield Run(str(count), _of(_LIMITED, seed, count), _exact)


def outages(seed: int, replicas: list[int]) -> Iterator[Run]:
    """Replicas with Valkey out of reach."""
    for count in replicas:
        for name, outage in _OUTAGES:
            setup = msgspec.structs.replace(_of(_LIMITED, seed, count), outages=(outage,))
            yield Run(f"{count}, {name}", setup, _bounded)


def staleness(seed: int, replicas: list[int]) -> Iterator[Run]:
    """Animals are added and keys are changed, some writers die between commit and bump; one can't tell."""
    for count in replicas:
        yield Run(f"{count}", _of(_WRITTEN, seed, count), _exact)
        setup = msgspec.structs.replace(
            _of(_WRITTEN, seed, count), writes=0.5, deaths=0.0, outages=(Outage("cut", 10.0, 40.0),)
        )
        yield Run(f"{count}, one process cut off", setup, _leased)


def caches(seed: int, replicas: list[int]) -> Iterator[Run]:
    """How often what is kept serves, by processes, writes and pages."""
    for pages in (20, 1_000):
        for writes in (0.0, 0.2, 2.0, 20.0):
            for count in replicas:
                setup = Setup(writes=writes, pages=pages, key_changes=0.01, requests=800.0, seconds=25.0)
                yield Run(f"{count}, {pages} pages, {writes:g} writes/s", _of(setup, seed, count), _exact)


def _of(setup: Setup, seed: int, processes: int) -> Setup:
    return msgspec.structs.replace(setup, seed=seed, processes=processes)


class Omitted(msgspec.Struct, frozen=True):
    """A step of the protocol, a run that needs it, and what is counted there."""

    step: str
    setup: Setup
    counts: str


_CUT = msgspec.structs.replace(
    _WRITTEN, processes=2, writes=0.3, deaths=0.0, key_changes=0.0, outages=(Outage("cut", 10.0, 40.0),)
)
_SLOW = msgspec.structs.replace(_WRITTEN, stalls=0.1, stall=0.04, deaths=0.0)
OMITTED = (
    Omitted("mark", msgspec.structs.replace(_WRITTEN, deaths=0.05), "regressed"),
    Omitted("bump", _WRITTEN, "stale_pages"),
    Omitted("mark, and answer after bump", _SLOW, "stale_pages"),
    Omitted(
        "version before read (pages)",
        msgspec.structs.replace(_SLOW, processes=2, requests=800.0, pages=5),
        "stale_pages",
    ),
    Omitted(
        "version before read (callers)",
        msgspec.structs.replace(_SLOW, key_changes=10.0, accounts=10),
        "stale_callers",
    ),
    Omitted("lease", _CUT, "oldest_seconds"),
    Omitted("shared counters", _LIMITED, "over"),
    Omitted("one round trip", msgspec.structs.replace(_LIMITED, accounts=20), "over"),
    Omitted(
        "recovery records", msgspec.structs.replace(_LIMITED, outages=(Outage("empty", 30.0, 0.05),)), "over"
    ),
    Omitted(
        "epoch", msgspec.structs.replace(_LIMITED, accounts=60, outages=(Outage("old", 15.0, 0.05),)), "over"
    ),
    Omitted(
        "divided share",
        msgspec.structs.replace(_LIMITED, outages=(Outage("kill", 30.0, 30.0),)),
        "minute_excess",
    ),
)


def seen(omitted: Omitted, with_it: Result, without: Result) -> bool:
    """Whether the fault showed: nothing (or what is documented) with the step, plainly more without it."""
    kept, lost = getattr(with_it, omitted.counts), getattr(without, omitted.counts)
    if omitted.step == "lease":
        return bool(kept <= LEASE_SECONDS < lost)
    if omitted.step == "divided share":
        return bool(kept <= 1 < lost)
    if omitted.step in ("recovery records", "epoch"):
        return bool(lost > 2 * kept)
    return bool(kept == 0 < lost)
