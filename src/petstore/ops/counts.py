"""What one process has counted, as plain numbers that can be added to another's, and written to a file.

Workers share a directory. Each writes a file of its own about once a second; who is scraped adds up all of
them, those of processes that have ended too, so that no sum falls between scrapes a second apart.
"""

from __future__ import annotations

import os
import secrets
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import msgspec

LATENCY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROUND_TRIP_BOUNDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
COMMIT_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
CAUSES = ("missing", "malformed", "unknown", "expired", "revoked")


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

    def add(self, other: Histogram) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def buckets(self, bounds: Sequence[float]) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them."""
        cumulative, seen = [], 0
        for bound, count in zip((*map(str, bounds), "+Inf"), self.counts, strict=True):
            seen += count
            cumulative.append((bound, float(seen)))
        return cumulative


class Counts(msgspec.Struct):
    """Everything that only grows: answers by operation and status, refusals by window, and so on.

    Only `in_outage` does not: how many processes can't reach the shared counters now.
    """

    answers: dict[tuple[str, int], Histogram] = msgspec.field(default_factory=dict)
    refusals: dict[str, int] = msgspec.field(
        default_factory=lambda: {"minute": 0, "day": 0, "ban": 0, "address": 0}
    )
    bans: int = 0
    unauthorized: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    commits: Histogram = msgspec.field(default_factory=lambda: Histogram.of(COMMIT_BOUNDS))
    writes: int = 0
    lines_dropped: int = 0
    round_trips: Histogram = msgspec.field(default_factory=lambda: Histogram.of(ROUND_TRIP_BOUNDS))
    outages: int = 0
    local_decisions: int = 0
    in_outage: int = 0

    def add(self, other: Counts) -> None:
        for place, histogram in other.answers.items():
            self.answers.setdefault(place, Histogram.of(LATENCY_BOUNDS)).add(histogram)
        for window, count in other.refusals.items():
            self.refusals[window] = self.refusals.get(window, 0) + count
        self.bans += other.bans
        for cause, count in other.unauthorized.items():
            self.unauthorized[cause] = self.unauthorized.get(cause, 0) + count
        self.commits.add(other.commits)
        self.writes += other.writes
        self.lines_dropped += other.lines_dropped
        self.round_trips.add(other.round_trips)
        self.outages += other.outages
        self.local_decisions += other.local_decisions
        self.in_outage += other.in_outage


class SharedCounts:
    """The directory in which the workers of one service leave what they have counted.

    The system gives the number of a process that has ended to another one, so it is only a part of the name.
    """

    def __init__(self, directory: Path, process: int) -> None:
        name = f"{process}-{secrets.token_hex(8)}"
        self._directory = directory
        self._own = directory / f"{name}.counts"
        self._partial = directory / f"{name}.partial"

    def write(self, counts: Counts) -> None:
        """Leave what this process has counted, whole or not at all. Raises OSError."""
        self._partial.write_bytes(msgspec.msgpack.encode(counts))
        self._partial.replace(self._own)

    def add_others(self, counts: Counts) -> None:
        """Add what every other process has left, now and before. Raises OSError."""
        for file in self._directory.glob("*.counts"):
            if file != self._own:
                other = msgspec.msgpack.decode(file.read_bytes(), type=Counts)
                if not _lives(int(file.name.partition("-")[0])):
                    other.in_outage = 0
                counts.add(other)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
