"""The parent's policy, with workers that are no processes and a clock that a test moves."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from petstore.server.job import Facts, WorkerFailed
from petstore.server.process import Patience, Process, Report
from petstore.server.supervisor import Supervisor
from tests.support.clock import ManualClock

Said = Callable[[], list[str]]


@pytest.fixture
def said() -> Iterator[Said]:
    """The sentences of the warnings and errors so far."""
    with capture_logs() as events:
        yield lambda: [event["message"] for event in events if event["log_level"] != "info"]


def find_no_room(*_: object) -> None:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


class Nothing:
    """A job that is never begun."""

    patience = Patience(stop_seconds=1, silence_seconds=30)

    def work(self, number: int, report: Report) -> int:
        raise AssertionError(number, report)

    def renew(self) -> None:
        pass

    def explain(self, error: Exception) -> str:
        return f"{type(error).__name__}."

    def observe(self, facts: Facts) -> None:
        pass

    def before_stop(self) -> None:
        pass


class Puppet(Process):
    """A worker that speaks and ends as a test says; what it is sent is kept."""

    def __init__(self, pid: int, number: int, began: float, sent: list[tuple[int, signal.Signals]]) -> None:
        super().__init__(pid, number, began, -1, Nothing.patience)
        self._sent = sent

    def listen(self, now: float) -> None:
        self.serves = True
        self.heard_at = now

    def send(self, number: signal.Signals) -> None:
        self._sent.append((self.pid, number))


class Steered(Supervisor):
    """Of two workers that are puppets."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(
            Nothing(),
            count=2,
            overlap=True,
            hangup_stops=False,
            monotonic=clock.monotonic,
        )
        self._clock = clock
        self.started: list[int] = []
        self.sent: list[tuple[int, signal.Signals]] = []

    @property
    def told(self) -> list[int]:
        """Who was sent a signal, in order."""
        return [pid for pid, _ in self.sent]

    def _start(self, number: int, *, is_second: bool = False) -> None:
        self.started.append(number)
        pid = len(self.started)
        process = self._processes[pid] = Puppet(pid, number, self._clock.monotonic(), self.sent)
        process.is_second = is_second

    def serves(self, pid: int) -> None:
        self._listen(self._processes[pid])

    def end(self, pid: int, code: int) -> None:
        self._ended(self._processes.pop(pid), code)


class TestPolicy:
    """What becomes of workers that end, that are replaced, and that never serve."""

    def test_of_several_workers_the_others_go_on(self, said: Said) -> None:
        """One that dies again within seconds waits before the next try; the service goes on with the rest."""
        clock = ManualClock()
        supervisor = Steered(clock)
        for number in range(2):
            supervisor._start(number)

        def die(number: int) -> None:
            (process,) = [each for each in supervisor._processes.values() if each.number == number]
            supervisor.end(process.pid, 1)

        die(0)
        die(0)
        assert supervisor.started == [0, 1, 0]
        assert "died twice within seconds" in said()[-1]
        supervisor._start_rested()
        assert supervisor.started == [0, 1, 0]
        clock.advance(5)
        supervisor._start_rested()
        assert supervisor.started == [0, 1, 0, 0]
        die(0)
        die(1)
        with pytest.raises(WorkerFailed):
            die(1)
        supervisor._signals.close()

    def test_a_replaced_worker_that_ends_is_no_failure(self, said: Said) -> None:
        """Neither when SIGHUP comes again before its successor serves, nor when that one dies at once: every
        place gets a worker that began after the last signal."""
        clock = ManualClock()
        supervisor = Steered(clock)
        supervisor._start(0)
        supervisor._start(1)
        supervisor._restart_all()  # 3 is to take the place of 1
        supervisor._restart_all()
        assert list(supervisor._processes) == [1, 2, 3]
        supervisor.serves(3)
        supervisor.serves(1)  # it was slow to say so; it does not take its successor's place
        assert supervisor.told == [1]
        supervisor.end(1, 0)
        supervisor.serves(4)
        supervisor.end(2, 0)  # the first round is over; the second one begins with 5 in the place of 3
        assert list(supervisor._processes) == [3, 4, 5]
        supervisor.serves(5)
        supervisor.end(5, -9)  # while 3 still drains
        assert said() == ["Worker 0 ended with -9; starting another one."]
        supervisor.serves(6)
        supervisor.end(3, 0)
        supervisor.serves(7)
        supervisor.end(4, 0)
        assert list(supervisor._processes) == [6, 7]
        assert supervisor.told == [1, 2, 3, 3, 4]
        assert len(said()) == 1
        supervisor._signals.close()

    def test_a_worker_that_never_serves_is_ended(self, said: Said) -> None:
        """After half a minute, with a line: what it waits for may hang, and nobody would know."""
        clock = ManualClock()
        supervisor = Steered(clock)
        supervisor._start(0)
        supervisor._start(1)
        clock.advance(29)
        supervisor.serves(1)
        supervisor._kill_overdue()
        assert (supervisor.sent, said()) == ([], [])
        clock.advance(1)
        supervisor._kill_overdue()
        assert supervisor.sent == [(2, signal.SIGKILL)]
        assert said()[0] == "Worker 1 does not serve after 30 s; killing it."
        supervisor._signals.close()

    def test_a_worker_that_hangs_is_ended(self, said: Said) -> None:
        """One that says nothing for the time of the setting; each word counts from then on."""
        clock = ManualClock()
        supervisor = Steered(clock)
        for number in range(2):
            supervisor._start(number)
            supervisor.serves(number + 1)
        clock.advance(20)
        supervisor.serves(2)
        clock.advance(9.9)
        supervisor._kill_overdue()
        assert (supervisor.sent, said()) == ([], [])
        clock.advance(0.1)
        supervisor._kill_overdue()
        assert supervisor.sent == [(1, signal.SIGKILL)]
        assert said() == ["Worker 0 has hung for 30 s; killing it."]
        clock.advance(1)
        supervisor._kill_overdue()  # the kernel may be slow with it
        assert supervisor.sent == [(1, signal.SIGKILL)] * 2
        supervisor._signals.close()

    def test_time_that_the_parent_slept_does_not_count(self, said: Said) -> None:
        """The machine was paused: the workers had no time to say anything either."""
        clock = ManualClock()
        supervisor = Steered(clock)
        supervisor._start(0)
        supervisor.serves(1)
        supervisor._start(1)  # it does not serve yet
        for _ in range(3):
            supervisor._now.wait_begins()
            clock.advance(3_600)
            supervisor._now.wait_ended(1)
            supervisor._kill_overdue()
        assert (supervisor.sent, said()) == ([], [])
        clock.advance(27)
        supervisor._kill_overdue()
        assert [pid for pid, _ in supervisor.sent] == [1, 2]
        supervisor._signals.close()

    def test_a_machine_without_room_for_a_worker(self, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
        """No process is to be had: the others go on, and it is tried again after five seconds."""
        clock = ManualClock()
        supervisor = Steered(clock)
        supervisor._start(0)
        supervisor.serves(1)

        monkeypatch.setattr(Process, "start", find_no_room)
        monkeypatch.setattr(Steered, "_start", Supervisor._start)
        supervisor._handle_signals(bytes([signal.SIGHUP]))
        assert said() == ["Worker 0 can't be started: Resource temporarily unavailable. Trying again soon."]
        assert (list(supervisor._processes), supervisor.sent) == ([1], [])
        clock.advance(4)
        supervisor._start_rested()
        assert len(said()) == 1
        clock.advance(1)
        supervisor._start_rested()
        assert len(said()) == 2
        supervisor._signals.close()

    def test_a_place_is_filled_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its new worker could not be started, and then the old one ended: one takes its place, not two."""
        supervisor = Steered(clock := ManualClock())
        supervisor._start(0)
        monkeypatch.setattr(Steered, "_start", Supervisor._start)
        monkeypatch.setattr(Process, "start", find_no_room)
        supervisor._handle_signals(bytes([signal.SIGHUP]))
        two = iter([Puppet(2, 0, 0, []), Puppet(3, 0, 0, [])])
        monkeypatch.setattr(Process, "start", lambda *_: next(two))
        supervisor.end(1, -9)
        clock.advance(5)
        supervisor._start_rested()
        assert list(supervisor._processes) == [2]
        supervisor._signals.close()

    @pytest.mark.parametrize("error", [ValueError("hush"), RecursionError(), OSError(), UnicodeError()])
    def test_no_reload_ends_it(self, said: Said, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        """Whatever preparing for new workers raises: a line says so, and the present ones stay."""
        supervisor = Steered(ManualClock())
        supervisor._start(0)

        def fail(_job: object) -> None:
            raise error

        monkeypatch.setattr(Nothing, "renew", fail)
        supervisor._handle_signals(bytes([signal.SIGHUP]))
        assert said() == [f"Not replaced, the workers go on as they are: {type(error).__name__}."]
        assert (supervisor.started, supervisor.sent) == ([0], [])
        supervisor._signals.close()

    def test_each_reload_has_one_result(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Done, refused or failed: in the numbers, and in the events, whatever comes before or after it."""
        supervisor = Steered(ManualClock())
        supervisor._count = 1
        supervisor._start(0)
        supervisor.serves(1)
        hangup = bytes([signal.SIGHUP])

        def refuse(_job: object) -> None:
            raise ValueError

        with capture_logs() as events:
            supervisor._tell_when_ready()
            with monkeypatch.context() as settings:
                settings.setattr(Nothing, "renew", refuse)
                supervisor._handle_signals(hangup)
                supervisor._tell_when_ready()
            supervisor._handle_signals(hangup)
            supervisor._tell_when_ready()
            supervisor.end(2, 1)  # before it served
            supervisor._tell_when_ready()
            supervisor._handle_signals(hangup)
            supervisor.serves(3)
            supervisor._tell_when_ready()
            supervisor.end(1, 0)
            supervisor._tell_when_ready()
            supervisor._tell_when_ready()
        assert supervisor._facts.reloads == {"done": 1, "refused": 1, "failed": 1}
        assert supervisor._facts.restarts == {"exit": 0, "signal": 0, "hung": 0}
        assert [event["event"] for event in events] == [
            "ready",
            "reload refused",
            "reload",
            "new worker ended",
            "reload",
            "reloaded",
        ]
        supervisor._signals.close()
