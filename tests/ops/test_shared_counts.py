"""Metrics of several workers: what is scraped from one is the sum of all, and never falls."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from petstore.ops.counts import LATENCY_BOUNDS, Counts, Gauges, Histogram, combine
from petstore.ops.metrics import Metrics
from petstore.ops.worker_metrics import ProcessMetrics, WorkerMetricsDirectory, decode_metrics

SCRAPES = 40


def sample(metrics: Metrics, name: str) -> float:
    (value,) = (
        line.rpartition(" ")[2]
        for line in metrics.scrape().render().decode().splitlines()
        if line.startswith(f"{name} ")
    )
    return float(value)


def counters(metrics: Metrics) -> dict[object, float]:
    """Everything that must not fall: counters, and all of a histogram."""
    return {
        (each.name, *each.labels.items()): each.value
        for family in metrics.scrape().collect()
        if family.type != "gauge"
        for each in family.samples
    }


def some_counts() -> Counts:
    counts = Counts(bans=1, writes=2, lines_dropped=3)
    counts.refusals["minute"] = 4
    counts.commits.observe(0.002, (0.001, 0.005))
    counts.answers["listPets", 200].observe(0.001, LATENCY_BOUNDS)
    counts.answers["listPets", 299] = Histogram.of(LATENCY_BOUNDS)
    return counts


def leave(directory: Path, process: int, gauges: Gauges | None = None) -> WorkerMetricsDirectory:
    """What a worker with this number has left."""
    shared = WorkerMetricsDirectory(directory, process)
    shared.write(ProcessMetrics(some_counts(), gauges or Gauges()))
    return shared


def ended_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as ended:
        pass
    return ended.pid


def test_a_file_has_the_answers_that_there_were(tmp_path: Path) -> None:
    """Each worker reads all of them every five seconds, on its event loop. What there were none of is still
    shown, with 0."""
    leave(tmp_path, os.getpid())
    [file] = tmp_path.glob("*.counts")
    assert list(decode_metrics(file.read_bytes()).counts.answers) == [("listPets", 200)]
    total = WorkerMetricsDirectory(tmp_path, os.getpid()).total(ProcessMetrics(Counts(), Gauges()))
    assert total.counts.answers.keys() == Counts().answers.keys()


def test_a_scrape_adds_up_all_workers(tmp_path: Path) -> None:
    """Each kind of number, from living workers and from those that have ended."""
    leave(tmp_path, os.getpid())
    leave(tmp_path, ended_process())
    metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
    metrics.counts.latencies("listPets", 200).observe(0.001, LATENCY_BOUNDS)
    metrics.counts.refused("minute", ban_began=True)
    metrics.counts.committed(5, 0.002)
    for _ in range(2):  # the second one finds the ended worker folded
        assert sample(metrics, 'petstore_requests_total{operation="listPets",status="200"}') == 3
        assert sample(metrics, 'petstore_request_seconds_count{class="2xx",operation="listPets"}') == 3
        assert sample(metrics, 'petstore_refusals_total{window="minute"}') == 9
        assert sample(metrics, "petstore_bans_total") == 3
        assert sample(metrics, "petstore_store_writes_total") == 9
        assert sample(metrics, "petstore_store_commit_seconds_count") == 3
        assert sample(metrics, "petstore_log_lines_dropped_total") == 6


def test_gauges_are_those_of_the_workers_that_live(tmp_path: Path) -> None:
    """Whoever is scraped tells of all; a worker that ended in an outage is in none any more."""
    for process in (os.getpid(), os.getpid(), ended_process()):
        leave(tmp_path, process, Gauges(in_outage=1))
    metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
    assert sample(metrics, "petstore_limiter_outage") == 2
    metrics.limiter_outage(True)
    assert sample(metrics, "petstore_limiter_outage") == 3
    metrics.limiter_outage(False)
    assert sample(metrics, "petstore_limiter_outage") == 2


def test_gauges_that_do_not_add_up() -> None:
    """The fullest worker, the smallest bound, the newest start, the oldest save, the longest hold of events,
    and one worker that fails; the rest is summed."""
    first = Gauges(
        open_descriptors=10, max_descriptors=100, started_at=5, counters_saved_at=9, resident_bytes=1
    )
    second = Gauges(
        open_descriptors=20, max_descriptors=90, started_at=7, counters_saved_at=8, resident_bytes=2
    )
    assert combine([first, second]) == Gauges(
        open_descriptors=20, max_descriptors=90, started_at=7, counters_saved_at=8, resident_bytes=3
    )
    fails = Gauges(ready=0, store_up=0, limiter_up=0, events_held_seconds=3.0)
    shown = combine([Gauges(), fails, Gauges(events_held_seconds=2.0)])
    assert (shown.ready, shown.store_up, shown.limiter_up, shown.events_held_seconds) == (0, 0, 0, 3.0)


def test_a_number_that_a_process_gets_again_takes_nothing_away(tmp_path: Path) -> None:
    """A worker whose number an ended one had leaves its counts beside that one's; its gauges are its own."""
    old = leave(tmp_path, os.getpid())
    old._started = 1  # another process had the number
    old.write(ProcessMetrics(some_counts(), Gauges(in_outage=1)))
    leave(tmp_path, os.getpid(), Gauges(in_outage=1))
    metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
    assert sample(metrics, "petstore_bans_total") == 2
    assert sample(metrics, "petstore_limiter_outage") == 1


@pytest.mark.slow
def test_sums_never_fall(tmp_path: Path) -> None:
    """Scrapes of two workers in turn, while both count and others die: not even by a rounding."""
    chance = random.Random(1)
    dead = ended_process()
    workers = [Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())) for _ in range(2)]
    seen: dict[object, float] = {}
    for number in range(SCRAPES):
        for worker in workers:
            for _ in range(chance.randrange(4)):
                worker.counts.committed(1, chance.random())
        if chance.random() < 0.1:
            chance.choice(workers).share()
        if chance.random() < 0.1:  # one that has counted and died
            died = Metrics(WorkerMetricsDirectory(tmp_path, dead))
            died.counts.committed(1, chance.random())
            died.share()
        now = counters(workers[number % 2])
        assert {name for name, value in seen.items() if now[name] < value} == set(), f"scrape {number}"
        seen = now


class TestFolding:
    """What ended workers have left becomes one file."""

    def test_files_do_not_pile_up(self, tmp_path: Path) -> None:
        """The counts of ten dead workers are summed, and their files do not stay: only one file is there."""
        metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
        dead = ended_process()
        for number in range(1, 11):
            leave(tmp_path, dead)
            (tmp_path / f"{dead}-cut-{number}.partial").touch()
            assert sample(metrics, "petstore_bans_total") == number
        assert len(list(tmp_path.glob("*.counts"))) == 1

    @pytest.mark.parametrize("lost", ["deletion", "lock"])
    def test_one_that_is_interrupted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
    ) -> None:
        """A worker that is killed before it has deleted, or that meets another one: no sum moves."""
        leave(tmp_path, ended_process())
        metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
        with monkeypatch.context() as patch:
            if lost == "deletion":
                patch.setattr(Path, "unlink", lambda *_, **__: None)
            else:
                patch.setattr("petstore.ops.worker_metrics.fcntl.flock", _taken)
            for _ in range(3):
                assert sample(metrics, "petstore_bans_total") == 1
            assert len(list(tmp_path.glob("*.counts"))) == 2
        assert sample(metrics, "petstore_bans_total") == 1
        assert sample(metrics, "petstore_bans_total") == 1

    def test_one_that_happens_while_another_worker_reads(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the reading of the files and that of their sum: nothing is counted twice."""
        leave(tmp_path, ended_process())
        first, second = (Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())) for _ in range(2))
        read_ended = WorkerMetricsDirectory._read_ended

        def fold_before(shared: WorkerMetricsDirectory) -> object:
            monkeypatch.setattr(WorkerMetricsDirectory, "_read_ended", read_ended)
            second.scrape()
            return read_ended(shared)

        monkeypatch.setattr(WorkerMetricsDirectory, "_read_ended", fold_before)
        assert sample(first, "petstore_bans_total") == 1
        assert sample(first, "petstore_bans_total") == 1


_AT_ONCE = """
import os, sys, threading
from pathlib import Path

from petstore.ops.metrics import Metrics
from petstore.ops.worker_metrics import WorkerMetricsDirectory

sys.setswitchinterval(1e-6)
for _ in range(10):
    if (child := os.fork()) == 0:
        metrics = Metrics(WorkerMetricsDirectory(Path(sys.argv[1]), os.getpid()))
        together = threading.Barrier(4)
        scrapes = [metrics.scrape() for _ in range(4)]
        def render(scrape):
            together.wait()
            scrape.render()
        threads = [threading.Thread(target=render, args=[each]) for each in scrapes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_scrapes_at_once_of_a_new_worker(tmp_path: Path) -> None:
    """Threads that make the decoder of a type together end their process: ten processes survive theirs."""
    done = subprocess.run([sys.executable, "-c", _AT_ONCE, tmp_path], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_scrape_shows_one_moment(tmp_path: Path) -> None:
    """What is counted and shared after it began is in the next one."""
    metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
    scrape = metrics.scrape()
    metrics.counts.refused("ban", ban_began=True)
    metrics.share()
    assert b"petstore_bans_total 0.0" in scrape.render()
    assert sample(metrics, "petstore_bans_total") == 1


def _taken(*_: object) -> None:
    raise BlockingIOError


def test_what_cannot_be_read_costs_no_scrape(tmp_path: Path) -> None:
    """A damaged file is left out, with a line in the log; the worker's own numbers are shown."""
    (tmp_path / "1-x.counts").write_bytes(b"\xff\x00")
    metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
    metrics.counts.committed(5, 0.002)
    assert sample(metrics, "petstore_store_writes_total") == 5


def test_a_directory_that_is_gone_costs_no_request(tmp_path: Path) -> None:
    """Sharing fails with a line in the log; counting goes on."""
    metrics = Metrics(WorkerMetricsDirectory(tmp_path / "absent", os.getpid()))
    metrics.share()
    metrics.counts.committed(1, 0.002)
    metrics.limiter_outage(True)
    assert sample(metrics, "petstore_store_writes_total") == 1
    assert sample(metrics, "petstore_limiter_outage") == 1


def test_a_scrape_is_short(tmp_path: Path) -> None:
    """A scrape has at most 1,700 samples at the start, for any number of workers: a worker makes each."""
    workers = [Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())) for _ in range(4)]
    for worker in workers:
        worker.share()
    lines = workers[0].scrape().render().splitlines()
    assert len([line for line in lines if not line.startswith(b"#")]) <= 1_700
