"""The numbers of all workers over the last ten minutes, in arrays of fixed size: 10 kB, kept in memory alone.

Each worker keeps its own since it began. It reads the others' numbers every five seconds, as finely as a
chart shows them: reading them each second would cost more than the rest of a round.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import msgspec

from petstore.core.service import Latency, Recent
from petstore.ops.counts import LATENCY_BOUNDS, Counts, Gauges
from petstore.ops.worker_metrics import ProcessMetrics

STEP_SECONDS = 5
STEPS = 120
RECENT_STEPS = 12
COUNTS = ("requests", "errors", "refusals", "commits", "lines_dropped")
GAUGES = ("waiting", "memory_bytes")
_BUCKETS = len(LATENCY_BOUNDS) + 1


class Sums(msgspec.Struct):
    """Counts of all workers at one moment, in the order of COUNTS, and answers by latency."""

    counts: list[int]
    buckets: list[int]

    def plus(self, other: Sums) -> Sums:
        counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        return Sums(counts, [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)])

    def minus(self, other: Sums) -> Sums | None:
        """The increase; None where a number fell, since not all workers could be read."""
        counts = [mine - theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        buckets = [mine - theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        return None if min(*counts, *buckets) < 0 else Sums(counts, buckets)


def sums_of(counts: Counts) -> Sums:
    """The requests of the interface count, `none` included, not the requests of pages."""
    answers = [(status, found.counts) for (name, status), found in counts.answers.items() if name != "site"]
    buckets = list(map(sum, zip(*(found for _, found in answers), strict=True)))
    errors = sum(sum(found) for status, found in answers if status >= 500)
    refusals, commits = sum(counts.refusals.values()), sum(counts.commits.counts)
    return Sums([sum(buckets), errors, refusals, commits, counts.lines_dropped], buckets)


class ServiceHistory:
    """`read` returns the numbers of all workers, or None when they can't be read; `monotonic` in seconds.

    `latest` is what was read last.
    """

    def __init__(self, read: Callable[[], ProcessMetrics | None], monotonic: Callable[[], float]) -> None:
        self._read = read
        self._monotonic = monotonic
        self._sums: Sums | None = None
        self._read_at = 0.0
        self.latest = ProcessMetrics(Counts(), Gauges())
        self._begin(0)

    def _begin(self, step: int) -> None:
        """Forget all up to a step."""
        self._step = self._first = step  # the last recorded one, and the one before the first
        self._counts = {name: array("f", [0.0]) * STEPS for name in COUNTS}
        self._gauges = {name: array("f", [0.0]) * STEPS for name in GAUGES}
        self._seconds = array("f", [0.0]) * STEPS
        self._buckets = array("I", [0]) * (STEPS * _BUCKETS)

    def sample(self) -> None:
        """Record what has come, if a step has passed; call it about once a second. Left out steps get the
        average."""
        if self._sums is None or self._now() != self._step:
            self.refresh()

    def refresh(self) -> None:
        """Read `latest`, and record it if a step has passed."""
        numbers = self._read()
        if numbers is None:
            return
        self.latest = numbers
        now = self._now()
        if self._sums is not None and now == self._step:
            return
        sums, read_at = sums_of(numbers.counts), self._monotonic()
        grown = None if self._sums is None else sums.minus(self._sums)
        if grown is not None:
            self._note(now, grown, read_at - self._read_at, numbers.gauges)
        else:
            self._begin(now)
        self._step, self._sums, self._read_at = now, sums, read_at

    def recent(self) -> Recent:
        """Averages over the last minute, or over the steps that there are."""
        known = min(RECENT_STEPS, self._step - self._first)
        if known <= 0:
            return Recent(0, 0.0, 0.0, 0.0, 0.0, None)
        steps = range(self._step - known + 1, self._step + 1)
        seconds = sum(self._seconds[step % STEPS] for step in steps)
        rates = {
            name: sum(self._counts[name][step % STEPS] for step in steps) / seconds for name in COUNTS[:4]
        }
        return Recent(seconds=round(seconds), **rates, latency=self._latency(steps))

    def total(self, name: str) -> float:
        """The sum of a count over the ten minutes."""
        return sum(self._counts[name])

    def series(self) -> dict[str, list[float | None]]:
        """Every step of ten minutes, oldest first: counts a second, gauges, and `p95` in milliseconds."""
        known = range(max(self._first, self._step - STEPS) + 1, self._step + 1)
        slots = [step % STEPS for step in known]
        latencies = [self._latency([step]) for step in known]
        found: dict[str, list[float | None]] = {
            **{name: [of[at] / self._seconds[at] for at in slots] for name, of in self._counts.items()},
            **{name: [of[at] for at in slots] for name, of in self._gauges.items()},
            "p95": [None if latency is None else latency.p95 for latency in latencies],
        }
        unknown: list[float | None] = [None] * (STEPS - len(known))
        return {name: unknown + values for name, values in found.items()}

    def _now(self) -> int:
        return int(self._monotonic()) // STEP_SECONDS

    def _note(self, now: int, grown: Sums, seconds: float, gauges: Gauges) -> None:
        passed = now - self._step
        for step in range(max(self._step, now - STEPS) + 1, now + 1):
            slot = step % STEPS
            self._seconds[slot] = seconds / passed
            for name, count in zip(COUNTS, grown.counts, strict=True):
                self._counts[name][slot] = count / passed
            self._gauges["waiting"][slot] = gauges.writes_waiting + gauges.pool_waiting
            self._gauges["memory_bytes"][slot] = gauges.resident_bytes
            counts = grown.buckets if step == now else [0] * _BUCKETS
            self._buckets[slot * _BUCKETS : (slot + 1) * _BUCKETS] = array("I", counts)

    def _latency(self, steps: Sequence[int]) -> Latency | None:
        """The latency of the answers within these steps; None when there were none."""
        slots = [step % STEPS * _BUCKETS for step in steps]
        counts = [sum(self._buckets[slot + bucket] for slot in slots) for bucket in range(_BUCKETS)]
        return latency_of(counts)


def latency_of(buckets: Sequence[int]) -> Latency | None:
    """The latency of answers, which come counted by latency; None when there are none."""
    if not any(buckets):
        return None
    return Latency(*(quantile(buckets, part) * 1_000 for part in (0.5, 0.95, 0.99)))


def quantile(counts: Sequence[int], part: float) -> float:
    """Seconds that a part of the answers took at most, like Prometheus' histogram_quantile: evenly spread
    within a bucket; for those above all bounds, the last bound."""
    wanted, seen, lower = part * sum(counts), 0.0, 0.0
    for count, upper in zip(counts, LATENCY_BOUNDS, strict=False):
        if count and seen + count >= wanted:
            return lower + (upper - lower) * (wanted - seen) / count
        seen, lower = seen + count, upper
    return LATENCY_BOUNDS[-1]
