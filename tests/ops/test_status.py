"""What callers may know of the service: whether it is well, and the last day by hours, without counts."""

from __future__ import annotations

import pytest

from petstore.core.durations import HOUR_MS
from petstore.core.service import ServiceStatus
from petstore.ops.counts import LATENCY_BOUNDS, Counts, Gauges
from petstore.ops.status import HOURS, CallersStatus
from petstore.ops.worker_metrics import ProcessMetrics
from tests.support.clock import ManualClock


class Service:
    """A service without requests of its own, which a test counts. It begins at a full hour."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.clock.advance(3_600 - self.clock.now_ms() / 1_000 % 3_600)
        self.counts, self.gauges = Counts(), Gauges()
        self.reads = 0
        self.status = CallersStatus(self.numbers, self.read_all, self.clock, replicas=1)
        self.status.sample()

    def numbers(self) -> ProcessMetrics:
        return ProcessMetrics(self.counts, self.gauges)

    def read_all(self) -> ProcessMetrics:
        self.reads += 1
        return self.numbers()

    def step(self, seconds: float = 60) -> None:
        self.clock.advance(seconds)
        self.status.sample()

    def count(self, count: int, status: int = 200, seconds: float = 0.004) -> None:
        for _ in range(count):
            self.counts.latencies("listPets", status).observe(seconds, LATENCY_BOUNDS)

    def answer(self, count: int, status: int = 200, seconds: float = 0.004) -> None:
        """Count answers within a minute that ends now."""
        self.count(count, status, seconds)
        self.step()

    def read(self) -> ServiceStatus:
        return self.status.read()


@pytest.fixture
def service() -> Service:
    return Service()


def test_a_fault_is_never_rounded_away(service: Service) -> None:
    """100 % means that no answer was a 5xx; refusals are not faults."""
    service.answer(99_999)
    service.answer(1_000, 429)
    assert service.read().whole.without_fault == 100
    service.answer(1, 503)
    assert service.read().whole.without_fault == 99.99


def test_each_hour_has_its_own_row(service: Service) -> None:
    """The newest first; one without requests has no figures, and all hours have a row together."""
    service.answer(10, seconds=0.004)
    service.step(3_600)
    service.step(3_600)
    service.answer(10, 500, seconds=0.2)
    now, quiet, first = service.read().hours
    assert (now.without_fault, quiet.without_fault, first.without_fault) == (0, None, 100)
    assert (now.began_at_ms, quiet.began_at_ms) == (
        first.began_at_ms + 2 * HOUR_MS,
        first.began_at_ms + HOUR_MS,
    )
    assert quiet.latency is None
    assert now.latency is not None
    assert first.latency is not None
    assert now.latency.p50 > 100
    assert first.latency.p95 < 10
    assert service.read().whole.without_fault == 50


def test_a_day_is_kept(service: Service) -> None:
    """However long the service runs; what it says it knows since moves on with that."""
    began_ms = service.read().since_ms
    for _ in range(2 * HOURS):
        service.answer(1)
        service.step(3_540)
    status = service.read()
    assert len(status.hours) == HOURS
    assert status.since_ms == status.hours[-1].began_at_ms > began_ms


def test_all_workers_are_read_once_a_minute(service: Service) -> None:
    """However often it is called, and asked."""
    for _ in range(120):
        service.step(1)
        service.read()
    assert service.reads == 1 + 2


def test_it_begins_with_the_process(service: Service) -> None:
    """What other workers counted before is not this one's; without requests nothing failed."""
    assert service.read().since_ms == service.clock.now_ms()
    assert [hour.without_fault for hour in service.read().hours] == [None]
    assert service.read().state == "well"


def test_a_clock_that_was_ahead_leaves_no_gap(service: Service) -> None:
    """Hours are told at once, and none that is still to come."""
    service.step()
    service.answer(5, status=503)
    service.step()
    service.clock.set_by(-86_400)
    service.answer(5)
    service.step()
    found = service.read()
    assert found.since_ms <= service.clock.now_ms()
    assert [hour.without_fault for hour in found.hours] == [100]
    service.clock.set_by(86_400)
    service.step()
    assert service.read().hours[0].without_fault is None


def test_the_state_is_that_of_the_last_minute(service: Service) -> None:
    """Some failures of many are none; a worker that can't serve says more than all answers."""
    service.count(1_000)
    service.answer(10, 500)
    assert service.read().state == "well"
    service.count(1_000)
    service.answer(11, 500)
    assert service.read().state == "failing"
    service.step()
    assert service.read().state == "well"
    service.gauges.ready = 0
    assert service.read().state == "down"
