"""Metrics for Prometheus. Counting is a few additions to plain numbers; the work is done by the scrape."""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Iterable

import msgspec
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from petstore import __version__
from petstore.ops.counts import (
    COMMIT_BOUNDS,
    LATENCY_BOUNDS,
    ROUND_TRIP_BOUNDS,
    Counts,
    Histogram,
    SharedCounts,
)

_log = structlog.get_logger("petstore.metrics")


class Metrics(Collector):
    """What this process counts and, with `shared`, what all workers of the service have counted.

    `lines_dropped` is asked for when the rest is shown. `commit` is what this program was built from.
    """

    def __init__(
        self,
        lines_dropped: Callable[[], int],
        shared: SharedCounts | None = None,
        commit: str = "unknown",
    ) -> None:
        self._lines_dropped = lines_dropped
        self._shared = shared
        self._commit = commit
        self._counts = Counts()
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def latencies(self, operation: str, status: int) -> Histogram:
        """Where answers under /v1 are counted, within LATENCY_BOUNDS; always the same one."""
        return self._counts.answers.setdefault((operation, status), Histogram.of(LATENCY_BOUNDS))

    def refused(self, window: str, *, ban_began: bool) -> None:
        """One 429, by the window that was used up, or `ban`."""
        self._counts.refusals[window] += 1
        self._counts.bans += ban_began

    def unauthorized(self, cause: str | None) -> None:
        """One 401."""
        assert cause is not None  # the gate alone answers so
        self._counts.unauthorized[cause] += 1

    def committed(self, jobs: int, seconds: float) -> None:
        """One group of writes was made durable (called by the writer's thread)."""
        self._counts.commits.observe(seconds, COMMIT_BOUNDS)
        self._counts.writes += jobs

    def limiter_outage(self, begins: bool) -> None:
        """The shared counters can't be reached from now on, or can be reached again."""
        self._counts.in_outage = int(begins)
        self._counts.outages += begins

    @property
    def in_outage(self) -> bool:
        """Whether this process can't reach the shared counters."""
        return bool(self._counts.in_outage)

    def decided_locally(self) -> None:
        """One request met an outage of the shared counters."""
        self._counts.local_decisions += 1

    def limiter_asked(self, seconds: float) -> None:
        """One round trip to the shared counters."""
        self._counts.round_trips.observe(seconds, ROUND_TRIP_BOUNDS)

    def share(self) -> None:
        """Leave the counts to the other workers; called about once a second, and at the end."""
        if self._shared is not None:
            self._counts.lines_dropped = self._lines_dropped()
            try:
                self._shared.write(self._counts)
            except OSError as error:
                _log.warning("counts not shared with the other workers", reason=str(error))

    def render(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        counts = self._all()
        yield from _request_metrics(counts)
        refusals = CounterMetricFamily("petstore_refusals", "429 answers by window.", labels=["window"])
        for window, count in counts.refusals.items():
            refusals.add_metric([window], count)
        yield refusals
        yield CounterMetricFamily("petstore_bans", "Bans that began.", value=counts.bans)
        unauthorized = CounterMetricFamily("petstore_unauthorized", "401 answers by cause.", labels=["cause"])
        for cause, count in counts.unauthorized.items():
            unauthorized.add_metric([cause], count)
        yield unauthorized
        yield from _limiter_metrics(counts)
        commits = HistogramMetricFamily(
            "petstore_store_commit_seconds", "Time of a group commit, with its fsync."
        )
        commits.add_metric([], counts.commits.buckets(COMMIT_BOUNDS), counts.commits.total)
        yield commits
        yield CounterMetricFamily("petstore_store_writes", "Writes in those commits.", value=counts.writes)
        build = GaugeMetricFamily(
            "petstore_build_info", "This program.", labels=["version", "commit", "python"]
        )
        build.add_metric([__version__, self._commit, platform.python_version()], 1)
        yield build
        yield CounterMetricFamily(
            "petstore_log_lines_dropped", "Log lines that were not written.", value=counts.lines_dropped
        )

    def _all(self) -> Counts:
        """This process's counts and, as they left them, those of the other workers."""
        counts = copy.deepcopy(self._counts)
        counts.lines_dropped = self._lines_dropped()
        if self._shared is not None:
            try:
                self._shared.add_others(counts)
            except (OSError, msgspec.MsgspecError) as error:
                _log.warning("counts of other workers not read", reason=str(error))
        return counts


def _limiter_metrics(counts: Counts) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        "petstore_limiter_outage", "Processes that can't reach the shared counters.", value=counts.in_outage
    )
    yield CounterMetricFamily(
        "petstore_limiter_outages", "Times that a process lost the shared counters.", value=counts.outages
    )
    yield CounterMetricFamily(
        "petstore_limiter_local_decisions",
        "Requests decided without the shared counters.",
        value=counts.local_decisions,
    )
    round_trips = HistogramMetricFamily(
        "petstore_limiter_round_trip_seconds", "Time of one call to the shared counters."
    )
    round_trips.add_metric([], counts.round_trips.buckets(ROUND_TRIP_BOUNDS), counts.round_trips.total)
    yield round_trips


def _request_metrics(counts: Counts) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "petstore_requests", "Answers by operation and status.", labels=["operation", "status"]
    )
    latencies: dict[str, Histogram] = {}
    for (operation, status), answers in counts.answers.items():
        requests.add_metric([operation, str(status)], sum(answers.counts))
        latencies.setdefault(operation, Histogram.of(LATENCY_BOUNDS)).add(answers)
    yield requests
    latency = HistogramMetricFamily(
        "petstore_request_seconds",
        "Time from the request's head to the end of its answer.",
        labels=["operation"],
    )
    for operation, histogram in latencies.items():
        latency.add_metric([operation], histogram.buckets(LATENCY_BOUNDS), histogram.total)
    yield latency
