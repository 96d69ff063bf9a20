"""What one process has counted and how it stands, as plain numbers that are added to other workers'.

The rule: `Counts` only grow, and are summed over all workers, those that have ended too. `Levels` are of now:
of the workers that live they are summed, but for the few of which the largest or the smallest one tells.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

LATENCY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROUND_TRIP_BOUNDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
COMMIT_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
WINDOWS = ("minute", "day", "ban", "address")
CAUSES = ("missing", "malformed", "unknown", "expired", "revoked")
# Every answer that is documented, so that each of its series begins at 0: an increase can be seen from the
# first one on. Others appear when they happen.
STATUSES = {
    "listPets": (200, 400, 401, 414, 429, 431, 500, 503),
    "createPet": (201, 400, 401, 408, 409, 413, 414, 415, 422, 429, 431, 500, 503),
    "getPet": (200, 400, 401, 404, 410, 414, 429, 431, 500, 503),
    "none": (204, 400, 401, 404, 405, 414, 429, 431, 500, 503),
    "site": (200, 404, 405, 500),
}


class Histogram(msgspec.Struct):
    """Observations in seconds by bucket; one writer at a time. Both histograms of a sum have one length."""

    counts: list[int]
    total: float = 0.0

    @classmethod
    def of(cls, bounds: Sequence[float]) -> Histogram:
        """An empty one: a bucket for each bound, and one for what is above all of them."""
        return cls([0] * (len(bounds) + 1))

    def observe(self, seconds: float, bounds: Sequence[float]) -> None:
        self.counts[bisect_left(bounds, seconds)] += 1
        self.total += seconds

    def __add__(self, other: Histogram) -> Histogram:
        counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        return Histogram(counts, self.total + _exact(other.total))

    def buckets(self, bounds: Sequence[float]) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them."""
        cumulative, seen = [], 0
        for bound, count in zip((*map(str, bounds), "+Inf"), self.counts, strict=True):
            seen += count
            cumulative.append((bound, float(seen)))
        return cumulative


def _exact(seconds: float) -> float:
    """A little less, in steps of 2**-20: sums of such numbers are exact, so the order in which workers are
    added can't make one fall by a rounding, which Prometheus would take for a restart."""
    return math.floor(seconds * 1_048_576) / 1_048_576


def _answers() -> dict[tuple[str, int], Histogram]:
    return {
        (operation, status): Histogram.of(LATENCY_BOUNDS)
        for operation, statuses in STATUSES.items()
        for status in statuses
    }


class Counts(msgspec.Struct):
    """Everything that only grows: answers by operation and status, refusals by window, and so on."""

    answers: dict[tuple[str, int], Histogram] = msgspec.field(default_factory=_answers)
    refusals: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(WINDOWS, 0))
    bans: int = 0
    unauthorized: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    page_reads: int = 0
    key_reads: int = 0
    commits: Histogram = msgspec.field(default_factory=lambda: Histogram.of(COMMIT_BOUNDS))
    writes: int = 0
    lines_dropped: int = 0
    round_trips: Histogram = msgspec.field(default_factory=lambda: Histogram.of(ROUND_TRIP_BOUNDS))
    outages: int = 0
    local_decisions: int = 0
    cpu_seconds: float = 0.0

    def add(self, other: Counts) -> None:
        """Every field is a number, a histogram, or a dictionary of those."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                for key, value in theirs.items():
                    mine[key] = mine[key] + value if key in mine else value
            else:
                setattr(self, name, mine + (_exact(theirs) if isinstance(theirs, float) else theirs))


class Levels(msgspec.Struct):
    """How one process stands: times in seconds since 1970, sizes in bytes."""

    in_outage: int = 0
    in_flight: int = 0
    connections: int = 0
    writes_waiting: int = 0
    pool_in_use: int = 0
    pool_waiting: int = 0
    cached_pages: int = 0
    cached_keys: int = 0
    resident_bytes: int = 0
    virtual_bytes: int = 0
    open_descriptors: int = 0
    max_descriptors: int = 0
    started_at: float = 0.0
    counters_saved_at: float = 0.0


# The descriptors of the worker that has most, against the smallest bound: one that is full is enough to fail.
# The newest start shows that a worker was started, the oldest save that one of them does not save.
_NOT_SUMMED: dict[str, Callable[[Any, Any], Any]] = {
    "open_descriptors": max,
    "max_descriptors": min,
    "started_at": max,
    "counters_saved_at": min,
}


def combine(levels: Sequence[Levels]) -> Levels:
    """The levels of all workers together, of which there is one at least."""
    combined = msgspec.structs.replace(levels[0])
    for other in levels[1:]:
        for name in Levels.__struct_fields__:
            both = _NOT_SUMMED.get(name, operator.add)
            setattr(combined, name, both(getattr(combined, name), getattr(other, name)))
    return combined
