"""Metrics for Prometheus. A request costs a few additions; a scrape makes the text, in a thread."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable

import msgspec
import structlog
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from petstore import __version__
from petstore.ops.counts import (
    COUNT_SPECS,
    GAUGE_SPECS,
    LATENCY_BOUNDS,
    Counts,
    Gauges,
    Histogram,
    MetricSpec,
)
from petstore.ops.worker_metrics import ProcessMetrics, WorkerMetricsDirectory, decode_metrics

_log = structlog.get_logger("petstore.metrics")

# Sets the numbers that a part of the service keeps itself. Must be quick.
Source = Callable[[Counts, Gauges], None]


class Scrape(Collector):
    """What a scrape shows: the numbers of one moment, whatever is counted later. For a thread."""

    def __init__(
        self,
        own: ProcessMetrics,
        total: Callable[[ProcessMetrics], ProcessMetrics | None],
        families: list[Metric],
    ) -> None:
        self._own = msgspec.msgpack.encode(own)
        self._total = total
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """The numbers of all workers, and after them the other families."""
        own = decode_metrics(self._own)
        numbers = self._total(own) or own
        yield from _families(numbers.counts, numbers.gauges)
        yield from self._families

    def render(self) -> bytes:
        """Prometheus' text format, about 1,700 lines."""
        return generate_latest(self)


class Metrics(msgspec.Struct):
    """The numbers of this process and, with `shared`, of all workers of the service."""

    shared: WorkerMetricsDirectory | None = None
    commit: str = "unknown"
    stage: str = ""
    counts: Counts = msgspec.field(default_factory=Counts)
    _gauges: Gauges = msgspec.field(default_factory=Gauges)
    _sources: list[Source] = []
    _collectors: list[Callable[[], Iterable[Metric]]] = []

    def add_source(self, source: Source) -> None:
        """Call `source` about once a second and at each scrape."""
        self._sources.append(source)

    def add_collector(self, collector: Callable[[], Iterable[Metric]]) -> None:
        """Add metrics that are the same for all workers, collected at each scrape."""
        self._collectors.append(collector)

    def limiter_outage(self, begins: bool) -> None:
        self._gauges.in_outage = int(begins)
        self.counts.outages += begins

    @property
    def in_outage(self) -> bool:
        return bool(self._gauges.in_outage)

    def share(self) -> ProcessMetrics:
        """Write the numbers of this worker for the others; call it about once a second, and at the end."""
        own = self.own()
        if self.shared is not None:
            try:
                self.shared.write(own)
            except OSError as error:
                _log.warning("counts not shared with the other workers", reason=str(error))
        return own

    def scrape(self) -> Scrape:
        """Takes a millisecond of the event loop; its text takes 20 of a thread."""
        families = [one for collect in self._collectors for one in collect()]
        return Scrape(self.share(), self._sum, [_program(self.commit, self.stage), *families])

    def own(self) -> ProcessMetrics:
        """The current numbers of this worker."""
        for source in self._sources:
            source(self.counts, self._gauges)
        return ProcessMetrics(self.counts, self._gauges)

    def total(self) -> ProcessMetrics | None:
        """The last written numbers of all workers, and the current ones of this worker; None when they can't
        be read.
        """
        return self._sum(self.share())

    def _sum(self, own: ProcessMetrics) -> ProcessMetrics | None:
        if self.shared is None:
            return own
        try:
            return self.shared.total(own)
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("counts of other workers not read", reason=str(error))
            return None


def _families(counts: Counts, gauges: Gauges) -> Iterable[Metric]:
    yield from _requests(counts.answers)
    for field, spec in COUNT_SPECS.items():
        yield family(spec, getattr(counts, field))
    for field, spec in GAUGE_SPECS.items():
        yield GaugeMetricFamily(spec.name, spec.help, value=getattr(gauges, field))


def _program(commit: str, stage: str) -> Metric:
    """petstore_build_info."""
    labels = ["version", "commit", "python", "stage"]
    build = GaugeMetricFamily("petstore_build_info", "This program.", labels=labels)
    build.add_metric([__version__, commit, platform.python_version(), stage], 1)
    return build


def family(spec: MetricSpec, value: float | dict[str, int] | Histogram) -> Metric:
    """What only grows: a number, a number for each label, or a histogram."""
    if isinstance(value, Histogram):
        return HistogramMetricFamily(spec.name, spec.help, value.buckets(spec.bounds), value.total)
    if not isinstance(value, dict):
        return CounterMetricFamily(spec.name, spec.help, value=value)
    counter = CounterMetricFamily(spec.name, spec.help, labels=[spec.label])
    for label, count in value.items():
        counter.add_metric([label], count)
    return counter


def _requests(answers: dict[tuple[str, int], Histogram]) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "petstore_requests", "Answers by operation and status.", labels=["operation", "status"]
    )
    latencies: dict[tuple[str, str], Histogram] = {}
    for (operation, status), histogram in answers.items():
        requests.add_metric([operation, str(status)], sum(histogram.counts))
        labels = operation, f"{status // 100}xx"
        latencies[labels] = latencies[labels] + histogram if labels in latencies else histogram
    yield requests
    latency = HistogramMetricFamily(
        "petstore_request_seconds",
        "Time from the request's head to the end of its answer.",
        labels=["operation", "class"],
    )
    for labels, histogram in latencies.items():
        latency.add_metric(labels, histogram.buckets(LATENCY_BOUNDS), histogram.total)
    yield latency
