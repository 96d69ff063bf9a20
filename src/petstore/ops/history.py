"""The numbers of all workers over the last ten minutes, a value for each second, in arrays of fixed size.

A worker remembers them itself since its own start: 80 kB, and nothing to keep or to share.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence

import msgspec

from petstore.core.service import Latency, Recent
from petstore.ops.counts import LATENCY_BOUNDS, Counts, Levels
from petstore.ops.worker_metrics import Numbers

SECONDS = 600
RECENT_SECONDS = 60
RATES = ("requests", "errors", "refusals", "commits", "lines_dropped")
LEVELS = ("waiting", "memory_bytes")
_BUCKETS = len(LATENCY_BOUNDS) + 1


class _Sums(msgspec.Struct):
    """Of all workers at one moment, in the order of RATES; answers by latency."""

    rates: list[int]
    buckets: list[int]

    def minus(self, other: _Sums) -> _Sums | None:
        """The increase; None where a number fell, since not all workers could be read."""
        rates = [mine - theirs for mine, theirs in zip(self.rates, other.rates, strict=True)]
        buckets = [mine - theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        return None if min(*rates, *buckets) < 0 else _Sums(rates, buckets)


def _sums(counts: Counts) -> _Sums:
    """Requests are those of the interface, `none` included, and not those of pages."""
    answers = [(status, found.counts) for (name, status), found in counts.answers.items() if name != "site"]
    buckets = list(map(sum, zip(*(found for _, found in answers), strict=True)))
    errors = sum(sum(found) for status, found in answers if status >= 500)
    refusals, commits = sum(counts.refusals.values()), sum(counts.commits.counts)
    return _Sums([sum(buckets), errors, refusals, commits, counts.lines_dropped], buckets)


class ServiceHistory:
    """`read` returns the numbers of all workers, or None when they can't be read; `monotonic` in seconds.

    `latest` is what was read last.
    """

    def __init__(self, read: Callable[[], Numbers | None], monotonic: Callable[[], float]) -> None:
        self._read = read
        self._monotonic = monotonic
        self._values = {name: array("f", [math.nan]) * SECONDS for name in (*RATES, *LEVELS)}
        self._buckets = array("I", [0]) * (SECONDS * _BUCKETS)
        self._began = self._second = int(monotonic())
        self._sums: _Sums | None = None
        self.latest = Numbers(Counts(), Levels())

    def sample(self) -> None:
        """Note what came since; call it about once a second. Seconds without a call get the average."""
        now = int(self._monotonic())
        if now == self._second and self._sums is not None:
            return
        numbers = self._read()
        if numbers is None:
            return
        sums = _sums(numbers.counts)
        grown = None if self._sums is None else sums.minus(self._sums)
        if grown is not None:
            self._note(now, grown, numbers.levels)
        else:
            self._began = now
        self._second, self._sums, self.latest = now, sums, numbers

    def recent(self, seconds: int = RECENT_SECONDS) -> Recent:
        """Averages over the last seconds, or over those that there are."""
        known = min(seconds, self._second - self._began, SECONDS)
        if known <= 0:
            return Recent(0, 0.0, 0.0, 0.0, 0.0, None)
        rates = {name: sum(self._span(name, known)) / known for name in RATES[:4]}
        return Recent(seconds=known, **rates, latency=self._latency(self._second, known))

    def total(self, name: str) -> float:
        """The sum of a rate over the ten minutes."""
        return sum(value for value in self._values[name] if not math.isnan(value))

    def series(self, points: int = 120) -> dict[str, list[float | None]]:
        """Averages over ten minutes, oldest first; also `p50` and `p95` in milliseconds.

        Each point stands for the same whole seconds at each call, so that a chart moves and does not waver.
        """
        step = SECONDS // points
        last = self._second // step * step
        ends = range(last - (points - 1) * step, last + 1, step)
        found: dict[str, list[float | None]] = {
            name: [self._average(name, end, step) for end in ends] for name in (*RATES, *LEVELS)
        }
        latencies = [self._latency(end, step) if self._is_known(end, step) else None for end in ends]
        found["p50"] = [None if latency is None else latency.p50 for latency in latencies]
        found["p95"] = [None if latency is None else latency.p95 for latency in latencies]
        return found

    def _note(self, now: int, grown: _Sums, levels: Levels) -> None:
        passed = now - self._second
        noted = dict(zip(RATES, (count / passed for count in grown.rates), strict=True))
        noted["waiting"] = levels.writes_waiting + levels.pool_waiting
        noted["memory_bytes"] = levels.resident_bytes
        for second in range(max(self._second, now - SECONDS) + 1, now + 1):
            place = second % SECONDS
            for name, value in noted.items():
                self._values[name][place] = value
            self._set_buckets(place, grown.buckets if second == now else [0] * _BUCKETS)

    def _set_buckets(self, place: int, counts: Sequence[int]) -> None:
        self._buckets[place * _BUCKETS : (place + 1) * _BUCKETS] = array("I", counts)

    def _is_known(self, end: int, seconds: int) -> bool:
        """Whether these seconds, of which `end` is the last, are in the arrays."""
        return (
            self._began < end - seconds + 1
            and end <= self._second
            and end - seconds >= self._second - SECONDS
        )

    def _average(self, name: str, end: int, seconds: int) -> float | None:
        if not self._is_known(end, seconds):
            return None
        return (
            sum(self._values[name][second % SECONDS] for second in range(end - seconds + 1, end + 1))
            / seconds
        )

    def _span(self, name: str, seconds: int) -> list[float]:
        last = self._second
        return [self._values[name][second % SECONDS] for second in range(last - seconds + 1, last + 1)]

    def _latency(self, end: int, seconds: int) -> Latency | None:
        """Of the answers within the seconds up to `end`; None when there were none."""
        places = [second % SECONDS * _BUCKETS for second in range(end - seconds + 1, end + 1)]
        counts = [sum(self._buckets[place + bucket] for place in places) for bucket in range(_BUCKETS)]
        if not any(counts):
            return None
        return Latency(*(quantile(counts, part) * 1_000 for part in (0.5, 0.95, 0.99)))


def quantile(counts: Sequence[int], part: float) -> float:
    """Seconds that a part of the answers took at most, like Prometheus' histogram_quantile: evenly spread
    within a bucket; for those above all bounds, the last bound."""
    wanted, seen, lower = part * sum(counts), 0.0, 0.0
    for count, upper in zip(counts, LATENCY_BOUNDS, strict=False):
        if count and seen + count >= wanted:
            return lower + (upper - lower) * (wanted - seen) / count
        seen, lower = seen + count, upper
    return LATENCY_BOUNDS[-1]
