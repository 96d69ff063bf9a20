"""The worker processes of the parent, oldest first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

from petstore.server.process import BACKGROUND, Process, ReportPipe, Timeouts
from petstore.server.signals import SignalPipe


class Workers:
    """Two processes have the same number while one replaces the other. Tests hand in the parameters."""

    def __init__(
        self, signals: SignalPipe | None = None, start_process: Callable[..., Process] = Process.start
    ) -> None:
        self.signals = signals or SignalPipe()
        self._start_process = start_process
        self._processes: dict[int, Process] = {}  # by pid

    def __iter__(self) -> Iterator[Process]:
        return iter(list(self._processes.values()))

    def __bool__(self) -> bool:
        return bool(self._processes)

    def start(
        self,
        number: int,
        work: Callable[[int, ReportPipe], int],
        now: float,
        timeouts: Timeouts,
        *,
        follows: bool = False,
    ) -> Process:
        """`follows`: the worker waits until those with its number have ended.

        Raises OSError when no process or descriptor is available.
        """
        before = self.with_number(number) if follows else []

        def run(report: ReportPipe) -> int:
            for other in self:
                if other in before and other.fileno() >= 0:
                    report.follow(other.fileno())
                else:
                    other.close_pipe()
            return work(number, report)

        process = self._start_process(number, run, self.signals, now, timeouts)
        process.waits_seconds = max((other.timeouts.replaced_seconds for other in before), default=0.0)
        self._processes[process.pid] = process
        return process

    def wait(self, timeout: float) -> list[Process]:
        """Wait for a signal or a report; returns the workers that reported."""
        return self.signals.wait([process for process in self if process.fileno() >= 0], timeout)

    def find(self, pid: int) -> Process | None:
        return self._processes.get(pid)

    def with_number(self, number: int) -> list[Process]:
        """The processes of this number, the oldest first."""
        return [process for process in self if process.number == number]

    def count_serving(self) -> int:
        """How many numbers have a worker that serves and is not stopping."""
        return len(self._serving() - {BACKGROUND})

    @property
    def has_background(self) -> bool:
        """Whether jobs are carried out."""
        return BACKGROUND in self._serving()

    def _serving(self) -> set[int]:
        return {process.number for process in self if process.is_ready and not process.is_stopping}

    def is_healthy(self, now: float) -> bool:
        """Whether one worker at least is within its deadline; the supervisor restarts the others."""
        return any(
            not process.was_killed and process.deadline > now
            for process in self
            if process.number != BACKGROUND
        )

    def kill_overdue(self, now: float) -> None:
        for process in self:
            if process.deadline <= now:
                process.kill_overdue(now)

    def terminate(self, number: signal.Signals, now: float) -> None:
        for process in self:
            process.terminate(number, now)

    def reap(self) -> Iterator[tuple[Process, int]]:
        """Each worker that has ended, no longer among these, with its exit code."""
        for process in self:
            code = process.reap()
            if code is not None:
                del self._processes[process.pid]
                yield process, code
