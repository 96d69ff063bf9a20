"""Counts and levels as Prometheus' metric families."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from petstore import __version__
from petstore.ops.counts import LATENCY_BOUNDS, SHOWN_COUNTS, SHOWN_LEVELS, Counts, Histogram, Levels, Shown


def families(counts: Counts, levels: Levels) -> Iterable[Metric]:
    yield from _requests(counts.answers)
    for field, shown in SHOWN_COUNTS.items():
        yield _family(shown, getattr(counts, field))
    for field, shown in SHOWN_LEVELS.items():
        yield GaugeMetricFamily(shown.name, shown.help, value=getattr(levels, field))


def program(commit: str) -> Metric:
    """petstore_build_info."""
    build = GaugeMetricFamily("petstore_build_info", "This program.", labels=["version", "commit", "python"])
    build.add_metric([__version__, commit, platform.python_version()], 1)
    return build


def _family(shown: Shown, value: float | dict[str, int] | Histogram) -> Metric:
    if isinstance(value, Histogram):
        return HistogramMetricFamily(shown.name, shown.help, value.buckets(shown.how), value.total)
    if not isinstance(value, dict):
        return CounterMetricFamily(shown.name, shown.help, value=value)
    family = CounterMetricFamily(shown.name, shown.help, labels=[shown.how])
    for label, count in value.items():
        family.add_metric([label], count)
    return family


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
