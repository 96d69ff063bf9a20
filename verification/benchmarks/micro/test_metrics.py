"""What a scrape of the metrics costs: it holds up every request of its worker meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from petstore.ops.metrics import Metrics
from petstore.ops.worker_metrics import WorkerMetricsDirectory


def test_scrape_of_four_workers(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """The metrics as they are at the start, with the files of four workers."""
    workers = [Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())) for _ in range(4)]
    for worker in workers:
        worker.share()
    benchmark(workers[0].render)
