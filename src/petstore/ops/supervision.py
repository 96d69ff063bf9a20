"""Metrics of the supervisor, which writes them to a file for the worker that is scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from petstore.ops.counts import MetricSpec
from petstore.ops.metrics import family
from petstore.ops.worker_metrics import replace_file

CAUSES = ("exit", "signal", "hung")
RESULTS = ("done", "refused", "failed")
_FILE = "parent"
_RESTARTS = MetricSpec(
    "petstore_worker_restarts", "Workers and background processes that ended by themselves.", "cause"
)
_RELOADS = MetricSpec("petstore_reloads", "SIGHUPs, by outcome.", "result")


class SupervisorMetrics(msgspec.Struct):
    """`workers` that serve (None: unknown), unexpected ends by cause, SIGHUPs by result.

    `is_replaced`: another version of the program is installed. `background`: jobs are carried out (None:
    unknown).
    """

    workers: int | None = None
    restarts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    reloads: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    is_replaced: bool = False
    background: bool | None = None


def write_metrics(directory: Path, metrics: SupervisorMetrics) -> None:
    """Replace the file atomically. Raises OSError."""
    replace_file(directory, _FILE, metrics)


def read_metrics(directory: Path | None) -> SupervisorMetrics:
    """What the supervisor wrote last; zeros without a directory."""
    if directory is None:
        return SupervisorMetrics()
    try:
        return msgspec.msgpack.decode((directory / _FILE).read_bytes(), type=SupervisorMetrics)
    except (OSError, msgspec.MsgspecError):
        return SupervisorMetrics()


def supervision_metrics(directory: Path | None) -> Callable[[], Iterable[Metric]]:
    """Reads the file at each scrape. Without one every count is 0 and the number of workers is left out."""

    def collect() -> Iterable[Metric]:
        metrics = read_metrics(directory)
        if metrics.workers is not None:
            yield GaugeMetricFamily("petstore_workers", "Workers that serve.", value=metrics.workers)
        if metrics.background is not None:
            text = "Whether the background process carries out jobs."
            yield GaugeMetricFamily("petstore_background_up", text, value=int(metrics.background))
        yield family(_RESTARTS, metrics.restarts)
        yield family(_RELOADS, metrics.reloads)
        replaced = "Whether the program on the disk is another one than this."
        yield GaugeMetricFamily("petstore_package_replaced", replaced, value=int(metrics.is_replaced))

    return collect
