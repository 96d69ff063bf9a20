"""Metrics of several workers: what is scraped from one is the sum of all, and never falls."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from petstore.ops.counts import LATENCY_BOUNDS, Counts, Histogram, SharedCounts
from petstore.ops.metrics import Metrics


def sample(metrics: Metrics, name: str) -> float:
    (value,) = (
        line.rpartition(" ")[2]
        for line in metrics.render().decode().splitlines()
        if line.startswith(f"{name} ")
    )
    return float(value)


def some_counts() -> Counts:
    counts = Counts(bans=1, writes=2, lines_dropped=3)
    counts.refusals["minute"] = 4
    counts.commits.observe(0.002, (0.001, 0.005))
    counts.answers["listPets", 200] = Histogram.of(LATENCY_BOUNDS)
    counts.answers["listPets", 200].observe(0.001, LATENCY_BOUNDS)
    return counts


def test_a_scrape_adds_up_all_workers(tmp_path: Path) -> None:
    """Each kind of number, from living workers and from those that have ended."""
    SharedCounts(tmp_path, 1).write(some_counts())
    SharedCounts(tmp_path, 2).write(some_counts())
    metrics = Metrics(lambda: 10, SharedCounts(tmp_path, 3))
    metrics.latencies("listPets", 200).observe(0.001, LATENCY_BOUNDS)
    metrics.refused("minute", ban_began=True)
    metrics.committed(5, 0.002)
    metrics.share()  # its own file is not added to what it knows itself
    assert sample(metrics, 'petstore_requests_total{operation="listPets",status="200"}') == 3
    assert sample(metrics, 'petstore_request_seconds_count{operation="listPets"}') == 3
    assert sample(metrics, 'petstore_refusals_total{window="minute"}') == 9
    assert sample(metrics, "petstore_bans_total") == 3
    assert sample(metrics, "petstore_store_writes_total") == 9
    assert sample(metrics, "petstore_store_commit_seconds_count") == 3
    assert sample(metrics, "petstore_log_lines_dropped_total") == 16


def test_an_outage_is_that_of_the_workers_that_live(tmp_path: Path) -> None:
    """Whoever is scraped tells of all; a worker that ended in an outage is in none any more."""
    with subprocess.Popen(["true"]) as ended:
        pass
    for process in (os.getpid(), os.getpid(), ended.pid):
        SharedCounts(tmp_path, process).write(Counts(in_outage=1))
    metrics = Metrics(lambda: 0, SharedCounts(tmp_path, os.getpid()))
    assert sample(metrics, "petstore_limiter_outage") == 2
    metrics.limiter_outage(True)
    assert sample(metrics, "petstore_limiter_outage") == 3
    metrics.limiter_outage(False)
    assert sample(metrics, "petstore_limiter_outage") == 2


def test_a_number_that_a_process_gets_again_takes_nothing_away(tmp_path: Path) -> None:
    """A worker whose number an ended one had, leaves its counts beside that one's."""
    SharedCounts(tmp_path, 1).write(some_counts())
    SharedCounts(tmp_path, 1).write(some_counts())
    assert sample(Metrics(lambda: 0, SharedCounts(tmp_path, 1)), "petstore_bans_total") == 2


def test_what_cannot_be_read_costs_no_scrape(tmp_path: Path) -> None:
    """A damaged file is left out, with a line in the log; the worker's own numbers are shown."""
    (tmp_path / "1.counts").write_bytes(b"\xff\x00")
    metrics = Metrics(lambda: 0, SharedCounts(tmp_path, 3))
    metrics.committed(5, 0.002)
    assert sample(metrics, "petstore_store_writes_total") == 5


def test_a_directory_that_is_gone_costs_no_request(tmp_path: Path) -> None:
    """Sharing fails with a line in the log; counting goes on."""
    metrics = Metrics(lambda: 0, SharedCounts(tmp_path / "absent", 1))
    metrics.share()
    metrics.committed(1, 0.002)
    assert sample(metrics, "petstore_store_writes_total") == 1
