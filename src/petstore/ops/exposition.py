"""Prometheus' names of the numbers in counts.py; docs/monitoring.md says what each means."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from petstore import __version__
from petstore.ops.counts import (
    COMMIT_BOUNDS,
    LATENCY_BOUNDS,
    ROUND_TRIP_BOUNDS,
    Counts,
    Histogram,
    Levels,
)

_COUNTERS = {
    "bans": ("petstore_bans", "Bans that began."),
    "page_reads": ("petstore_page_reads", "Pages that were not kept and read from the database."),
    "key_reads": ("petstore_key_reads", "Keys that were not kept and looked up in the database."),
    "writes": ("petstore_store_writes", "Writes in group commits."),
    "lines_dropped": ("petstore_log_lines_dropped", "Log lines that were not written."),
    "outages": ("petstore_limiter_outages", "Times that a process lost the shared counters."),
    "local_decisions": (
        "petstore_limiter_local_decisions",
        "Requests decided without the shared counters.",
    ),
    "cpu_seconds": ("process_cpu_seconds", "Processor time of the workers."),
}
_BY_LABEL = {
    "refusals": ("petstore_refusals", "429 answers by window.", "window"),
    "unauthorized": ("petstore_unauthorized", "401 answers by cause.", "cause"),
}
_HISTOGRAMS = {
    "commits": ("petstore_store_commit_seconds", "Time of a group commit, with its fsync.", COMMIT_BOUNDS),
    "round_trips": (
        "petstore_limiter_round_trip_seconds",
        "Time of one call to the shared counters.",
        ROUND_TRIP_BOUNDS,
    ),
}
_GAUGES = {
    "in_outage": ("petstore_limiter_outage", "Processes that can't reach the shared counters."),
    "in_flight": ("petstore_requests_in_flight", "Requests under /v1 that are being answered."),
    "connections": ("petstore_connections", "Connections of clients, by open descriptors."),
    "writes_waiting": ("petstore_store_writes_waiting", "Writes in SQLite's queue."),
    "pool_in_use": ("petstore_pool_connections_in_use", "Connections to PostgreSQL in use."),
    "pool_waiting": ("petstore_pool_waiting", "Requests that wait for such a connection."),
    "cached_pages": ("petstore_kept_pages", "Pages that are kept."),
    "cached_keys": ("petstore_kept_keys", "Keys that are kept."),
    "counters_saved_at": (
        "petstore_counters_saved_timestamp_seconds",
        "When limits and usage were last saved.",
    ),
    "resident_bytes": ("process_resident_memory_bytes", "Resident memory of the workers."),
    "virtual_bytes": ("process_virtual_memory_bytes", "Virtual memory of the workers."),
    "open_descriptors": ("process_open_fds", "Open descriptors of the worker that has most."),
    "max_descriptors": ("process_max_fds", "Descriptors that a worker may have open."),
    "started_at": ("process_start_time_seconds", "When the newest worker began."),
}


def families(counts: Counts, levels: Levels) -> Iterable[Metric]:
    """Everything that workers count, in Prometheus' terms."""
    yield from _requests(counts.answers)
    for field, (name, text, label) in _BY_LABEL.items():
        family = CounterMetricFamily(name, text, labels=[label])
        for value, count in getattr(counts, field).items():
            family.add_metric([value], count)
        yield family
    for field, (name, text) in _COUNTERS.items():
        yield CounterMetricFamily(name, text, value=getattr(counts, field))
    for field, (name, text, bounds) in _HISTOGRAMS.items():
        histogram: Histogram = getattr(counts, field)
        yield HistogramMetricFamily(name, text, histogram.buckets(bounds), histogram.total)
    for field, (name, text) in _GAUGES.items():
        yield GaugeMetricFamily(name, text, value=getattr(levels, field))


def program(commit: str) -> Metric:
    """Which program this is."""
    build = GaugeMetricFamily("petstore_build_info", "This program.", labels=["version", "commit", "python"])
    build.add_metric([__version__, commit, platform.python_version()], 1)
    return build


def _requests(answers: dict[tuple[str, int], Histogram]) -> Iterable[Metric]:
    requests = CounterMetricFamily(
        "petstore_requests", "Answers by operation and status.", labels=["operation", "status"]
    )
    latencies: dict[tuple[str, str], Histogram] = {}
    for (operation, status), histogram in answers.items():
        requests.add_metric([operation, str(status)], sum(histogram.counts))
        place = operation, f"{status // 100}xx"
        latencies[place] = latencies[place] + histogram if place in latencies else histogram
    yield requests
    latency = HistogramMetricFamily(
        "petstore_request_seconds",
        "Time from the request's head to the end of its answer.",
        labels=["operation", "class"],
    )
    for place, histogram in latencies.items():
        latency.add_metric(place, histogram.buckets(LATENCY_BOUNDS), histogram.total)
    yield latency
