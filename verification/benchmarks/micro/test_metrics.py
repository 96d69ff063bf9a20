"""What a scrape costs: until it is begun it holds up every request of its worker, then a thread goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from petstore.ops.metrics import Metrics
from petstore.ops.worker_metrics import WorkerMetricsDirectory


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    """As they are at the start, with the files of four workers."""
    workers = [Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())) for _ in range(4)]
    for worker in workers:
        worker.share()
    return workers[0]


def test_scrape_is_begun(benchmark: BenchmarkFixture, metrics: Metrics) -> None:
    """The numbers of this worker."""
    benchmark(metrics.scrape)


def test_scrape_is_rendered(benchmark: BenchmarkFixture, metrics: Metrics) -> None:
    """The text of the sums of all workers."""
    benchmark(metrics.scrape().render)
