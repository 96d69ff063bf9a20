"""The history of a service's numbers: rates, latencies, all workers, a bounded memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import astuple

from petstore.ops.counts import LATENCY_BOUNDS, Counts, Gauges
from petstore.ops.history import STEPS, ServiceHistory, quantile
from petstore.ops.metrics import Metrics
from petstore.ops.worker_metrics import ProcessMetrics, WorkerMetricsDirectory
from tests.support.clock import ManualClock


class Service:
    """A service without requests of its own, which a test counts."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.counts = Counts()
        self.gauges = Gauges()
        self.can_be_read = True
        self.reads = 0
        self.history = ServiceHistory(self.read, self.clock.monotonic)
        self.history.sample()

    def read(self) -> ProcessMetrics | None:
        self.reads += 1
        return ProcessMetrics(self.counts, self.gauges) if self.can_be_read else None

    def answer(self, count: int, status: int = 200, seconds: float = 0.004, name: str = "listPets") -> None:
        for _ in range(count):
            self.counts.latencies(name, status).observe(seconds, LATENCY_BOUNDS)

    def step(self, seconds: float = 5) -> None:
        """Let time pass, and sample."""
        self.clock.advance(seconds)
        self.history.sample()


@pytest.fixture
def service() -> Service:
    return Service()


def test_rates_are_averages_of_the_time_that_is_known(service: Service) -> None:
    """Requests, errors, refusals and commits; what there was before the first sample is left out."""
    service.answer(150)
    service.answer(30, 503)
    service.counts.refused("minute", ban_began=False)
    service.step()
    service.counts.committed(9, 0.002)
    service.step()
    recent = service.history.recent()
    assert (recent.seconds, recent.requests, recent.errors) == (10, 18, 3)
    assert (recent.refusals, recent.commits) == pytest.approx((0.1, 0.1))
    assert service.history.total("errors") == 30


def test_before_the_first_step_nothing_is_known(service: Service) -> None:
    """No rate, no latency, and a chart of gaps."""
    recent = service.history.recent()
    assert (recent.seconds, recent.requests, recent.latency) == (0, 0.0, None)
    assert set(service.history.series()["requests"]) == {None}


def test_pages_are_no_requests(service: Service) -> None:
    """Who looks at the numbers does not move them."""
    service.answer(5, name="site")
    service.step()
    assert service.history.recent().requests == 0


def test_latencies_are_estimated_within_their_bucket(service: Service) -> None:
    """Half, 95 % and 99 % of the answers, in milliseconds; none without answers."""
    service.answer(90, seconds=0.004)  # within 2.5 to 5 ms
    service.answer(10, seconds=0.09)  # within 50 to 100 ms
    service.step()
    latency = service.history.recent().latency
    assert latency is not None
    assert astuple(latency) == pytest.approx((2.5 + 2.5 * 50 / 90, 75, 95))
    assert service.history.series()["p95"][-1] == pytest.approx(75)
    service.step(60)
    assert service.history.recent().latency is None


def test_a_latency_above_all_bounds_is_the_last_bound() -> None:
    """A latency above all bounds is shown as the last bound, as in Prometheus."""
    assert quantile([0] * len(LATENCY_BOUNDS) + [3], 0.5) == LATENCY_BOUNDS[-1]


def test_a_late_sample_is_spread_and_an_early_one_waits(service: Service) -> None:
    """A loop that was held up shows no peak; within a step the other workers are not read."""
    service.answer(100)
    service.step(25)
    service.answer(10)
    reads = service.reads
    service.step(4)
    assert service.reads == reads
    assert service.history.series()["requests"][-6:] == [None, 4, 4, 4, 4, 4]
    service.step(1)
    assert service.history.series()["requests"][-1] == 2


def test_a_look_reads_the_present_state(service: Service) -> None:
    """It does within a step, which it does not end."""
    service.gauges = Gauges(writes_waiting=3)
    service.history.refresh()
    assert service.history.latest.gauges.writes_waiting == 3
    assert service.history.recent().seconds == 0


def test_a_chart_has_ten_minutes_and_forgets_what_is_older(service: Service) -> None:
    """A chart has the last ten minutes, the oldest first; its arrays are used again and again."""
    for step in range(2 * STEPS):
        service.answer(5 * (step // STEPS + 1))
        service.gauges.writes_waiting = step // STEPS
        service.step()
    series = service.history.series()
    assert {len(values) for values in series.values()} == {STEPS}
    assert set(series["requests"]) == {2.0}
    assert set(series["waiting"]) == {1.0}
    assert service.history.recent().seconds == 60


def test_a_pause_longer_than_the_history_leaves_its_average(service: Service) -> None:
    """A process that was stopped for an hour goes on."""
    service.answer(3_600)
    service.step(3_600)
    assert service.history.recent().requests == 1


def test_numbers_that_can_not_be_read_or_fall_make_no_negative_rate(service: Service) -> None:
    """A failed read is left out; after a fall the history begins anew."""
    service.answer(10)
    service.step()
    service.can_be_read = False
    service.step()
    service.can_be_read = True
    service.answer(20)
    service.step()
    assert service.history.series()["requests"][-3:] == [2, 2, 2]
    service.counts = Counts()
    service.step()
    assert service.history.recent().seconds == 0
    service.answer(20)
    service.step()
    assert service.history.recent().requests == 4


def test_it_has_the_numbers_of_all_workers(tmp_path: Path) -> None:
    """The history has the numbers of all workers; those of another worker come from its file."""
    other = WorkerMetricsDirectory(tmp_path, os.getpid())
    other.write(ProcessMetrics(Counts(), Gauges(writes_waiting=2)))
    metrics = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid()))
    clock = ManualClock()
    history = ServiceHistory(metrics.total, clock.monotonic)
    history.sample()
    counts = Counts()
    for worker, requests in ((metrics.counts, 3), (counts, 4)):
        for _ in range(requests):
            worker.latencies("listPets", 200).observe(0.001, LATENCY_BOUNDS)
    other.write(ProcessMetrics(counts, Gauges(writes_waiting=2)))
    clock.advance(5)
    history.sample()
    assert history.recent().requests == pytest.approx(1.4)
    assert history.latest.gauges.writes_waiting == 2
