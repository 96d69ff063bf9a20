"""Counters for Prometheus. Counting is a few additions to plain numbers; the work is done by the scrape."""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from petstore import __version__

_LATENCY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_COMMIT_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Histogram:
    """Observations in seconds by bucket; one writer at a time."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def add(self, other: Histogram) -> None:
        """Take another one of the same bounds in."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them."""
        cumulative, seen = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            seen += count
            cumulative.append((bound, float(seen)))
        return cumulative


class Metrics(Collector):
    """Everything counted by one process; `lines_dropped` is asked for when the rest is shown."""

    def __init__(self, lines_dropped: Callable[[], int]) -> None:
        self._lines_dropped = lines_dropped
        self._answers: dict[tuple[str, int], Histogram] = {}
        self._refusals: dict[str, int] = {"minute": 0, "day": 0, "ban": 0, "address": 0}
        self._bans = 0
        self._commits = Histogram(_COMMIT_BOUNDS)
        self._jobs = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """One answer under /v1."""
        answers = self._answers.get((operation, status))
        if answers is None:
            answers = self._answers[operation, status] = Histogram(_LATENCY_BOUNDS)
        answers.counts[bisect_left(_LATENCY_BOUNDS, seconds)] += 1
        answers.total += seconds

    def refused(self, window: str, *, ban_began: bool) -> None:
        """One 429, by the window that was used up, or `ban`."""
        self._refusals[window] += 1
        self._bans += ban_began

    def committed(self, jobs: int, seconds: float) -> None:
        """One group of writes was made durable (called by the writer's thread)."""
        self._commits.observe(seconds)
        self._jobs += jobs

    def render(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "petstore_requests", "Answers by operation and status.", labels=["operation", "status"]
        )
        latencies: dict[str, Histogram] = {}
        for (operation, status), answers in list(self._answers.items()):
            requests.add_metric([operation, str(status)], sum(answers.counts))
            latencies.setdefault(operation, Histogram(_LATENCY_BOUNDS)).add(answers)
        yield requests
        latency = HistogramMetricFamily(
            "petstore_request_seconds",
            "Time from the request's head to the end of its answer.",
            labels=["operation"],
        )
        for operation, histogram in latencies.items():
            latency.add_metric([operation], histogram.buckets(), histogram.total)
        yield latency
        refusals = CounterMetricFamily("petstore_refusals", "429 answers by window.", labels=["window"])
        for window, count in self._refusals.items():
            refusals.add_metric([window], count)
        yield refusals
        yield CounterMetricFamily("petstore_bans", "Bans that began.", value=self._bans)
        yield from self._store_metrics()
        yield CounterMetricFamily(
            "petstore_log_lines_dropped", "Log lines that were not written.", value=self._lines_dropped()
        )

    def _store_metrics(self) -> Iterable[Metric]:
        commits = HistogramMetricFamily(
            "petstore_store_commit_seconds", "Time of a group commit, with its fsync."
        )
        commits.add_metric([], self._commits.buckets(), self._commits.total)
        yield commits
        yield CounterMetricFamily("petstore_store_writes", "Writes in those commits.", value=self._jobs)
        build = GaugeMetricFamily("petstore_build_info", "This program.", labels=["version", "python"])
        build.add_metric([__version__, platform.python_version()], 1)
        yield build
