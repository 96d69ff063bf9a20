"""Metrics for Prometheus. A request costs a few additions; the scrape does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from petstore.ops.counts import COMMIT_BOUNDS, LATENCY_BOUNDS, ROUND_TRIP_BOUNDS, Counts, Histogram, Levels
from petstore.ops.exposition import families, program
from petstore.ops.worker_metrics import Numbers, WorkerMetricsDirectory

_log = structlog.get_logger("petstore.metrics")

# Sets the numbers that a part of the service keeps itself. Must be quick.
Source = Callable[[Counts, Levels], None]


class Metrics(Collector):
    """The numbers of this process and, with `shared`, of all workers of the service."""

    def __init__(self, shared: WorkerMetricsDirectory | None = None, commit: str = "unknown") -> None:
        self._shared = shared
        self._commit = commit
        self._counts = Counts()
        self._levels = Levels()
        self._sources: list[Source] = []
        self._local: list[Callable[[], Iterable[Metric]]] = []
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def read_from(self, source: Source) -> None:
        """Call `source` about once a second and at each scrape."""
        self._sources.append(source)

    def show(self, local: Callable[[], Iterable[Metric]]) -> None:
        """Add metrics that are the same for all workers, collected at each scrape."""
        self._local.append(local)

    def latencies(self, operation: str, status: int) -> Histogram:
        """The histogram of these responses, with LATENCY_BOUNDS; always the same object."""
        return self._counts.answers.setdefault((operation, status), Histogram.of(LATENCY_BOUNDS))

    def refused(self, window: str, *, ban_began: bool) -> None:
        """One 429, by the exhausted window, or `ban`."""
        self._counts.refusals[window] += 1
        self._counts.bans += ban_began

    def unauthorized(self, cause: str) -> None:
        """One 401, by the cause that the gate found."""
        self._counts.unauthorized[cause] += 1

    def committed(self, jobs: int, seconds: float) -> None:
        """One group commit. Called by the writer's thread."""
        self._counts.commits.observe(seconds, COMMIT_BOUNDS)
        self._counts.writes += jobs

    def limiter_outage(self, begins: bool) -> None:
        self._levels.in_outage = int(begins)
        self._counts.outages += begins

    @property
    def in_outage(self) -> bool:
        return bool(self._levels.in_outage)

    def decided_locally(self) -> None:
        """One request during an outage of the shared counters."""
        self._counts.local_decisions += 1

    def limiter_asked(self, seconds: float) -> None:
        """One round trip to the shared counters."""
        self._counts.round_trips.observe(seconds, ROUND_TRIP_BOUNDS)

    def share(self) -> None:
        """Write the numbers for the other workers; call it about once a second, and at the end."""
        if self._shared is not None:
            self._write(self._shared, self._own())

    def render(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        numbers = self._all()
        yield from families(numbers.counts, numbers.levels)
        yield program(self._commit)
        for local in self._local:
            yield from local()

    def _own(self) -> Numbers:
        for source in self._sources:
            source(self._counts, self._levels)
        return Numbers(self._counts, self._levels)

    def _all(self) -> Numbers:
        """The last written numbers of all workers, and the current ones of this worker."""
        own = self._own()
        if self._shared is None:
            return own
        self._write(self._shared, own)
        try:
            return self._shared.total(own)
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("counts of other workers not read", reason=str(error))
            return own

    def _write(self, shared: WorkerMetricsDirectory, own: Numbers) -> None:
        try:
            shared.write(own)
        except OSError as error:
            _log.warning("counts not shared with the other workers", reason=str(error))
