"""What the service says is wrong: each trouble in words with what to do, and none without cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from petstore.core.durations import DAY_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.service import DatabaseState, ServiceConstants
from petstore.ops.counts import Counts, Gauges
from petstore.ops.history import ServiceHistory
from petstore.ops.report import Report
from petstore.ops.supervision import SupervisorMetrics, write_metrics
from petstore.ops.worker_metrics import ProcessMetrics
from tests.support.clock import ManualClock


class Service:
    """A service in which all is well, until a test changes it."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock()
        now_ms = self.clock.now_ms()
        self.numbers = ProcessMetrics(
            Counts(), Gauges(counters_saved_at=now_ms / 1_000, open_descriptors=9, max_descriptors=100)
        )
        self.history = ServiceHistory(lambda: self.numbers, self.clock.monotonic)
        self.history.sample()
        self.database: DatabaseState | None = DatabaseState(
            "SQLite", "petstore.db", 6, 6, "", 80, log_bytes=20, free_bytes=300, backed_up_at_ms=now_ms
        )
        self.supervisor = SupervisorMetrics(workers=2)
        self.saving: str | None = None
        self.reads = 0
        self.known = ServiceConstants("abc", True, "local", 1, 2, now_ms)
        self.directory = directory

    def read_database(self) -> DatabaseState:
        self.reads += 1
        if self.database is None:
            raise StoreUnavailable("no route")
        return self.database

    def change_database(self, **changes: Any) -> None:
        assert self.database is not None
        self.database = replace(self.database, **changes)

    def report(self) -> Report:
        write_metrics(self.directory, self.supervisor)
        return self.report_of(self.directory)

    def report_of(self, directory: Path | None) -> Report:
        reads = self.read_database, lambda: self.saving
        return Report(self.history, *reads, self.known, directory, self.clock)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


async def test_nothing_is_wrong_without_cause(service: Service) -> None:
    """The ground of the tests below."""
    assert (await service.report().state()).troubles == []


def failing(service: Service) -> None:
    service.numbers.counts.latencies("listPets", 503).counts[0] += 2
    service.clock.advance(5)


def refusing(service: Service) -> None:
    service.numbers.gauges.in_outage = 1
    service.known = replace(service.known, on_outage="refuse")


def dropping(service: Service) -> None:
    service.numbers.counts.lines_dropped += 7
    service.clock.advance(5)


def lost(service: Service) -> None:
    service.database = None


Cause = Callable[[Service], object]
CAUSES: dict[str, Cause] = {
    "2 answers failed in the last ten minutes (5xx).": failing,
    "Requests that wait for the database: 501.": lambda s: setattr(s.numbers.gauges, "writes_waiting", 501),
    "Requests that wait for the database: 1.": lambda s: setattr(s.numbers.gauges, "pool_waiting", 1),
    "2 of 2 processes can't reach Valkey: each process grants its share of the limits.": lambda s: setattr(
        s.numbers.gauges, "in_outage", 2
    ),
    "1 of 2 processes can't reach Valkey: requests are refused.": refusing,
    "Limits and usage have not been saved.": lambda s: s.clock.advance(61),
    "Limits and usage have not been saved for 12 s: full.": lambda s: setattr(
        s, "saving", "not for 12 s: full."
    ),
    "The database can't be read.": lost,
    "The program and the database differ: older.": lambda s: s.change_database(remark="older"),
    "The database's disk has little room: less than three copies of the database.": lambda s: (
        s.change_database(free_bytes=299)
    ),
    "There is no backup yet.": lambda s: s.change_database(backed_up_at_ms=0),
    "The last backup is older than two days.": lambda s: s.change_database(
        backed_up_at_ms=s.clock.now_ms() - 2 * DAY_MS - 1
    ),
    "The background process does not run: stock lists, webhooks and mail wait.": lambda s: setattr(
        s.supervisor, "background", False
    ),
    "1 of 2 workers serve.": lambda s: setattr(s.supervisor, "workers", 1),
    "Another version is installed than the one that runs.": lambda s: setattr(
        s.supervisor, "is_replaced", True
    ),
    "A worker has 81 of 100 descriptors open.": lambda s: setattr(s.numbers.gauges, "open_descriptors", 81),
    "7 log lines were not written in the last ten minutes.": dropping,
}


@pytest.mark.parametrize("what", CAUSES)
async def test_each_trouble_alone_says_what_is_wrong_and_what_to_do(service: Service, what: str) -> None:
    """The overview shows whole sentences, whichever trouble there is."""
    CAUSES[what](service)
    (trouble,) = (await service.report().state()).troubles
    assert trouble.what == what
    assert trouble.to_do.endswith(".")


async def test_the_database_is_read_once_a_minute(service: Service) -> None:
    """However often the page asks; a failure is tried again a minute later as well."""
    report = service.report()
    for _ in range(3):
        await report.state()
    assert service.reads == 1
    service.database = None
    service.numbers.gauges.counters_saved_at += 60
    service.clock.advance(60)
    assert (await report.state()).database is None
    await report.state()
    assert service.reads == 2


async def test_without_a_supervisor_its_numbers_are_unknown(service: Service) -> None:
    """A worker without a supervisor does not know the number of workers."""
    state = await service.report_of(None).state()
    assert (state.serving, state.troubles) == (None, [])
