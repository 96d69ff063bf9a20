"""The supervisor's policy, with fake processes, a fake signal pipe and a manual clock."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from petstore.ops.supervision import SupervisorMetrics
from petstore.server.process import BACKGROUND, REPLACED, Process, ReportPipe, Timeouts
from petstore.server.signals import SignalPipe
from petstore.server.supervised import WorkerFailed
from petstore.server.supervisor import Supervisor
from petstore.server.workers import Workers
from tests.support.clock import ManualClock
from tests.support.waiting import PATIENCE_SECONDS


class FakeProcess(Process):
    """Reports over a pipe and ends when a test says so; `sent` are the signals to it."""

    def __init__(self, pid: int, number: int, now: float, timeouts: Timeouts) -> None:
        reader, self.writer = os.pipe()
        super().__init__(pid, number, now, reader, timeouts)
        self.report = ReportPipe(self.writer)
        self.has_reported = False
        self.exit_code: int | None = None
        self.sent: list[signal.Signals] = []

    def send(self, number: signal.Signals) -> None:
        self.sent.append(number)

    def reap(self) -> int | None:
        return self.exit_code


class Service(SignalPipe):
    """A supervisor, and all that surrounds it: its job, its processes and the signals that it receives."""

    timeouts: Timeouts
    has_background = False

    def __init__(self, events: list[Any], *, overlap: bool) -> None:
        self.clock = ManualClock()
        self.events = events
        self.processes: list[FakeProcess] = []
        self.has_room = True
        self.forked_before: list[int] = []
        self.reload_error: Exception | None = None
        self.slept_seconds = 0.0
        self._waits_seconds = 0.0
        self.metrics = SupervisorMetrics()
        self.supervisor = Supervisor(
            self,
            count=2,
            overlap=overlap,
            hangup_stops=False,
            monotonic=self.clock.monotonic,
            workers=Workers(self, self.fork),
        )
        self._signals = b""

    def work(self, number: int, report: ReportPipe) -> int:
        raise AssertionError(number, report)

    def renew(self) -> None:
        if self.reload_error is not None:
            raise self.reload_error

    def explain(self, error: Exception) -> str:
        return f"{type(error).__name__}."

    def observe(self, metrics: SupervisorMetrics) -> None:
        self.metrics = metrics

    def after_fork(self) -> None:
        self.forked_before.append(len(self.processes))

    def before_stop(self) -> None:
        pass

    def fork(self, number: int, _work: object, _signals: object, now: float, timeouts: Timeouts) -> Process:
        if not self.has_room:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        self.processes.append(FakeProcess(len(self.processes) + 1, number, now, timeouts))
        return self.processes[-1]

    def wait(self, others: Iterable[Any], timeout: float) -> list[Any]:
        self.clock.advance(self._waits_seconds + self.slept_seconds)
        return [other for other in others if other.has_reported]

    def take(self) -> bytes:
        taken, self._signals = self._signals, b""
        return taken

    def close(self) -> None:
        for process in self.processes:
            process.close_pipe()
            os.close(process.writer)

    def step(self, *signals: signal.Signals, after: float = 0) -> None:
        """A turn, with these signals; before it turns of a second, for so many seconds."""
        while after >= 1:
            self._turn(1)
            after -= 1
        self._signals = bytes(signals)
        self._turn(after)

    def _turn(self, seconds: float) -> None:
        self._waits_seconds = seconds
        self.supervisor.step()
        self._waits_seconds = 0.0
        for process in self.processes:
            process.has_reported = False

    def serve(self, *pids: int) -> None:
        """These workers report that they serve."""
        for pid in pids:
            process = self.processes[pid - 1]
            process.report.ready()
            process.has_reported = True
        self.step()

    def end(self, pid: int, code: int) -> None:
        self.processes[pid - 1].exit_code = code
        self.step(signal.SIGCHLD)

    @property
    def running(self) -> list[int]:
        return [process.pid for process in self.processes if process.exit_code is None]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of the workers that were started, in order."""
        return [process.number for process in self.processes]

    @property
    def sent(self) -> dict[int, list[signal.Signals]]:
        """The signals to each process that received one."""
        return {process.pid: process.sent for process in self.processes if process.sent}

    @property
    def warnings(self) -> list[str]:
        """The messages of the warnings and errors so far."""
        return [event["message"] for event in self.events if event["log_level"] != "info"]


def started(stop_seconds: float, heartbeat_seconds: float, *, overlap: bool) -> Iterator[Service]:
    with capture_logs() as events:
        made = Service(events, overlap=overlap)
        made.timeouts = Timeouts(stop_seconds, stop_seconds, heartbeat_seconds)
        made.supervisor.start_workers()
        yield made
        made.close()


@pytest.fixture
def service() -> Iterator[Service]:
    """A service with two workers that have started and do not serve yet."""
    yield from started(1, 30, overlap=True)


@pytest.fixture
def alone() -> Iterator[Service]:
    """A service without overlap, where a worker may take two minutes to stop."""
    yield from started(120, 300, overlap=False)


class TestDeath:
    """A worker that ends by itself."""

    def test_the_others_go_on(self, service: Service) -> None:
        """One that dies twice within seconds waits before the next try; when no other is left, all ends."""
        service.end(1, 1)
        service.end(3, 1)
        assert service.numbers == [0, 1, 0]
        assert "died twice within seconds" in service.warnings[-1]
        service.step(after=4)
        assert service.numbers == [0, 1, 0]
        service.step(after=1)
        assert service.numbers == [0, 1, 0, 0]
        service.end(4, 1)
        service.end(2, 1)
        with pytest.raises(WorkerFailed):
            service.end(5, 1)

    def test_a_machine_without_room_for_a_worker(self, service: Service) -> None:
        """The others go on, and a start is tried again after five seconds."""
        service.has_room = False
        service.end(1, 1)
        failed = "Worker 0 can't be started: Resource temporarily unavailable. Trying again soon."
        assert (service.running, service.warnings[1:]) == ([2], [failed])
        service.step(after=4)
        assert service.warnings[1:] == [failed]
        service.step(after=1)
        assert service.warnings[1:] == [failed] * 2


class TestTimeouts:
    """A worker that is late is killed."""

    def test_a_worker_that_never_serves(self, service: Service) -> None:
        """A worker that does not serve within 30 s is killed, with a warning."""
        service.step(after=29)
        service.serve(2)
        assert (service.sent, service.warnings) == ({}, [])
        service.step(after=1)
        assert service.sent == {1: [signal.SIGKILL]}
        assert service.warnings == ["Worker 0 does not serve after 30 s; killing it."]

    def test_a_worker_that_hangs(self, service: Service) -> None:
        """When its last heartbeat is as old as the setting says; a kill without effect is repeated."""
        service.serve(1, 2)
        service.step(after=20)
        service.serve(2)
        service.step(after=9.75)
        assert (service.sent, service.warnings) == ({}, [])
        service.step(after=0.25)
        assert service.sent == {1: [signal.SIGKILL]}
        assert service.warnings == ["Worker 0 has hung for 30 s; killing it."]
        service.step(after=1)
        assert service.sent == {1: [signal.SIGKILL] * 2}

    def test_a_stop_has_less_time_than_a_replacement(self, service: Service) -> None:
        """I16: also for a worker that was being replaced; a second signal gives it no more."""
        timeouts = Timeouts(stop_seconds=9, replaced_seconds=14, heartbeat_seconds=30)
        process = service.fork(0, None, None, 100, timeouts)
        process.terminate(REPLACED, 100)
        assert process.deadline == 114
        process.terminate(signal.SIGTERM, 102)
        process.terminate(signal.SIGINT, 103)
        assert process.deadline == 111

    def test_a_pause_of_the_machine_does_not_count(self, service: Service) -> None:
        """The workers were paused too, served or not, while the parent waited and while it worked."""
        service.serve(1)
        service.clock.advance(3_600)
        service.step()
        service.slept_seconds = 3_600
        for _ in range(3):
            service.step()
        service.slept_seconds = 0
        assert (service.sent, service.warnings) == ({}, [])
        service.step(after=27)
        assert service.sent == {1: [signal.SIGKILL], 2: [signal.SIGKILL]}


class TestReload:
    """SIGHUP."""

    def test_a_second_one_during_the_replacement(self, service: Service) -> None:
        """Every worker is replaced by one that started after the last SIGHUP. A replaced worker that ends is
        no failure, and neither is a new one that dies while its predecessor drains."""
        service.step(signal.SIGHUP)  # 3 starts, to replace 1
        service.step(signal.SIGHUP)
        assert service.running == [1, 2, 3]
        service.serve(3)
        service.serve(1)  # late: it does not replace its successor
        assert list(service.sent) == [1]
        service.end(1, 0)
        service.serve(4)
        service.end(2, 0)  # the first round is over; in the second, 5 replaces 3
        assert service.running == [3, 4, 5]
        service.serve(5)
        service.end(5, -9)  # while 3 still drains
        assert service.warnings == ["Worker 0 ended with -9; starting another one."]
        service.serve(6)
        service.end(3, 0)
        service.serve(7)
        service.end(4, 0)
        assert service.running == [6, 7]
        assert {pid: len(sent) for pid, sent in service.sent.items()} == {1: 1, 2: 1, 3: 2, 4: 1}
        assert len(service.warnings) == 1

    def test_a_place_is_filled_once(self, service: Service) -> None:
        """The new worker can't be started, and then the old one ends: one worker takes its place, not two."""
        service.has_room = False
        service.step(signal.SIGHUP)
        assert (service.running, service.sent) == ([1, 2], {})
        service.has_room = True
        service.end(1, -9)
        service.step(after=5)
        assert service.numbers.count(0) == 2

    def test_without_overlap_the_next_worker_waits_for_its_predecessor(self, alone: Service) -> None:
        """It starts before the one that it replaces ends, and is not taken for late meanwhile."""
        alone.serve(1, 2)
        alone.step(signal.SIGHUP)
        assert (alone.running, alone.sent) == ([1, 2, 3], {1: [REPLACED]})
        alone.step(after=119)
        alone.end(1, 0)
        assert (alone.running, alone.sent) == ([2, 3, 4], {1: [REPLACED], 2: [REPLACED]})
        alone.serve(3)
        alone.end(2, 0)
        alone.serve(4)
        assert alone.metrics.reloads["done"] == 1
        assert (alone.running, alone.numbers, alone.warnings) == ([3, 4], [0, 1, 0, 1], [])

    def test_without_overlap_one_that_never_serves_is_killed(self, alone: Service) -> None:
        """A worker that never serves is killed after the time that the one before may take, and its own."""
        alone.serve(1, 2)
        alone.step(signal.SIGHUP)
        alone.end(1, 0)
        alone.step(after=419)
        assert signal.SIGKILL not in alone.sent.get(3, [])
        alone.step(after=1)
        assert signal.SIGKILL in alone.sent[3]
        assert "Worker 0 does not serve after 420 s; killing it." in alone.warnings

    def test_without_overlap_a_stop_comes_to_who_waits_too(self, alone: Service) -> None:
        """It has its own time after that of the worker before."""
        alone.serve(1, 2)
        alone.step(signal.SIGHUP)
        for process in alone.processes:
            process.terminate(signal.SIGTERM, alone.clock.monotonic())
        alone.step(after=120)
        assert {pid: sent[-1] for pid, sent in alone.sent.items()} == {
            1: signal.SIGKILL, 2: signal.SIGKILL, 3: signal.SIGTERM,
        }  # fmt: skip
        alone.step(after=120)
        assert alone.sent[3][-1] == signal.SIGKILL

    @pytest.mark.parametrize("error", [ValueError("hush"), RecursionError(), OSError(), UnicodeError()])
    def test_no_exception_ends_the_service(self, service: Service, error: Exception) -> None:
        """A reload that raises anything is logged, and the current workers stay."""
        service.reload_error = error
        service.step(signal.SIGHUP)
        assert service.warnings == [f"Not replaced, the workers go on as they are: {type(error).__name__}."]
        assert (service.running, service.sent) == ([1, 2], {})

    def test_each_one_has_one_result(self, service: Service) -> None:
        """Done, refused or failed: in the metrics and in the events."""
        service.serve(1, 2)
        service.reload_error = ValueError()
        service.step(signal.SIGHUP)
        service.reload_error = None
        service.step(signal.SIGHUP)
        service.end(3, 1)  # before it served
        service.step(signal.SIGHUP)
        service.serve(4)
        service.end(1, 0)
        service.serve(5)
        service.end(2, 0)
        service.step()
        assert service.metrics.reloads == {"done": 1, "refused": 1, "failed": 1}
        assert service.metrics.restarts == {"exit": 0, "signal": 0, "hung": 0}
        events = [event["event"] for event in service.events]
        assert events == ["ready", "reload refused", "reload", "new worker ended", "reload", "reloaded"]


class TestBackground:
    """The process that carries out jobs."""

    @pytest.fixture
    def service(self, service: Service) -> Service:
        service.has_background = True
        return service

    def test_it_starts_when_all_workers_serve(self, service: Service) -> None:
        """It is not a worker: the service does not wait for it."""
        service.serve(1)
        assert service.numbers == [0, 1]
        service.serve(2)
        assert service.numbers == [0, 1, BACKGROUND]
        assert service.forked_before == [2]
        assert (service.metrics.workers, service.metrics.background) == (2, False)
        service.serve(3)
        assert (service.metrics.workers, service.metrics.background) == (2, True)

    def test_it_dies_again_and_again(self, service: Service) -> None:
        """The next one waits five seconds; the workers go on."""
        service.serve(1, 2)
        service.end(3, 1)
        service.end(4, 1)
        assert service.numbers == [0, 1, BACKGROUND, BACKGROUND]
        assert service.warnings[-1].startswith("The background process died twice within seconds")
        service.step(after=5)
        assert service.numbers[4:] == [BACKGROUND]
        assert (service.metrics.workers, service.metrics.background) == (2, False)
        assert service.metrics.restarts["exit"] == 2

    @pytest.mark.parametrize(("worker", "background", "is_clean"), [(0, -9, True), (-9, 0, False)])
    def test_killing_it_at_a_stop_cuts_nothing_off(
        self, service: Service, worker: int, background: int, is_clean: bool
    ) -> None:
        """The job is free again when its lease ends; a worker that is killed cuts responses off."""
        service.serve(1, 2)
        for process, code in zip(service.processes, (worker, 0, background), strict=True):
            process.exit_code = code
        assert service.supervisor.join_all() == is_clean

    def test_it_does_not_keep_a_service_without_workers(self, service: Service) -> None:
        """When the last worker dies twice within seconds the service ends."""
        service.serve(1, 2)
        service.end(1, 1)
        service.end(2, 1)
        service.end(4, 1)
        with pytest.raises(WorkerFailed):
            service.end(5, 1)

    def test_a_machine_without_room_for_it(self, service: Service) -> None:
        """It is tried again every five seconds."""
        service.has_room = False
        service.serve(1, 2)
        assert service.warnings[-1].startswith("The background process can't be started")
        service.has_room = True
        service.step(after=5)
        assert service.numbers == [0, 1, BACKGROUND]

    def test_a_reload_replaces_the_background_process_after_the_workers(self, service: Service) -> None:
        """Requests are served by new settings first; jobs can wait."""
        service.serve(1, 2)
        service.serve(3)
        service.step(signal.SIGHUP)
        service.serve(4)
        service.end(1, 0)
        service.serve(5)
        service.end(2, 0)
        service.serve(6)
        service.end(3, 0)
        assert service.numbers == [0, 1, BACKGROUND, 0, 1, BACKGROUND]
        assert (service.metrics.background, service.metrics.reloads["done"]) == (True, 1)


class TestPredecessor:
    """A worker that follows another."""

    def test_the_next_one_waits_until_the_worker_before_has_ended(self) -> None:
        """What that one reports is left to the parent."""
        reader, writer = os.pipe()
        report = ReportPipe(-1)
        report.follow(os.dup(reader))
        waiting = threading.Thread(target=report.await_predecessor, daemon=True)
        waiting.start()
        ReportPipe(writer).heartbeat()
        waiting.join(0.05)
        assert waiting.is_alive()
        os.close(writer)
        waiting.join(PATIENCE_SECONDS)
        assert not waiting.is_alive()
        assert os.read(reader, 16) == b"."
        os.close(reader)

    def test_the_first_worker_waits_for_nobody(self) -> None:
        """It follows no other worker, so a start is not slower for it."""
        ReportPipe(-1).await_predecessor()
