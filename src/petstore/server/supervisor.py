"""The parent's policy: starts workers, starts a dead one anew, replaces them on SIGHUP, ends them in order.

A signal handler only notes its signal and wakes the parent, which takes one at a time, so that none can
arrive in the middle of anything. What a worker does is handed in; process.py is the handle
of one.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable

import structlog

from petstore.core.clock import AwakeClock
from petstore.server.job import Facts, Job, WorkerFailed
from petstore.server.notify import Notifier
from petstore.server.process import REPLACED, Process, Report
from petstore.server.signals import SignalPipe

_SHORT_LIFE_SECONDS = 5.0

_log = structlog.get_logger("petstore.parent")


class Supervisor:
    """Keeps `count` processes running that do the job.

    SIGTERM stops them in order, SIGINT without a pause before, SIGHUP replaces them unless `hangup_stops`.
    `overlap`: a new worker may serve beside the one that it replaces. Otherwise it starts after its end.
    A worker that tries the job's patience is killed; unless it was told to stop, another one starts.
    """

    def __init__(
        self,
        job: Job,
        *,
        count: int,
        overlap: bool,
        hangup_stops: bool,
        monotonic: Callable[[], float],
        notifier: Notifier | None = None,
    ) -> None:
        self._job = job
        self._count = count
        self._overlap = overlap
        self._hangup_stops = hangup_stops
        self._was_ready = False
        self._is_reloading = self._is_stopping = False
        self._facts = Facts()
        self._notifier = notifier or Notifier(monotonic)
        self._now = AwakeClock(monotonic)
        self._signals = SignalPipe()
        self._processes: dict[int, Process] = {}  # by pid, in the order in which they began
        self._to_replace: list[int] = []
        self._again = False  # SIGHUP came during a replacement, which began with the settings before
        self._resting: dict[int, float] = {}
        self._stop_by: signal.Signals | None = None
        self._is_clean = True

    def run(self) -> bool:
        """Until a signal says stop; whether all workers then ended with 0. Raises WorkerFailed after that."""
        try:
            for number in range(self._count):
                self._start(number)
            while self._stop_by is None:
                received = self._wait()
                self._start_rested()
                self._handle_signals(received)
                self._tell_when_ready()
        finally:
            self._terminate_all(self._stop_by or signal.SIGTERM)
            self._join_all()
            self._signals.close()
        return self._is_clean

    def _start(self, number: int, *, is_second: bool = False) -> None:
        def work(report: Report) -> int:
            for other in self._processes.values():
                other.hang_up()
            return self._job.work(number, report)

        try:
            process = Process.start(number, work, self._signals, self._now(), self._job.patience)
        except OSError as error:  # no more processes or descriptors are to be had just now
            message = f"Worker {number} can't be started: {error.strerror}. Trying again soon."
            _log.error("worker not started", worker=number, reason=error.strerror, message=message)
            self._resting[number] = self._now() + _SHORT_LIFE_SECONDS
        else:
            process.is_second = is_second
            self._processes[process.pid] = process
            self._resting.pop(number, None)

    def _wait(self) -> bytes:
        """The signals that arrived; meanwhile heed what workers say, and kill those that stay."""
        moments = [*(one.deadline for one in self._processes.values()), *self._resting.values()]
        now = self._now()
        timeout = max(0.0, min([now + self._notifier.turn_seconds, *moments]) - now)
        self._now.wait_begins()
        speaking = self._signals.wait([one for one in self._processes.values() if one.fileno() >= 0], timeout)
        self._now.wait_ended(timeout)
        for process in speaking:
            self._listen(process)
        self._kill_overdue()
        self._facts.workers = self._serving()
        self._job.observe(self._facts)
        self._notifier.turn(self._status, is_well=self._is_well)
        return self._signals.take()

    def _listen(self, process: Process) -> None:
        served_before = process.serves
        process.listen(self._now())
        if process.serves and not served_before and self._overlap:
            older = itertools.takewhile(lambda other: other is not process, self._processes.values())
            for other in older:
                if other.number == process.number:
                    other.terminate(REPLACED, self._now())

    def _serving(self) -> int:
        """For how many numbers there is a worker that serves and goes on."""
        stay = {one.number for one in self._processes.values() if one.serves and not one.was_told_to_stop}
        return len(stay)

    @property
    def _status(self) -> str:
        return "Stopping." if self._is_stopping else f"{self._serving()} of {self._count} workers serve."

    @property
    def _is_well(self) -> bool:
        """Whether some worker does what it should; the others are mended here."""
        now = self._now()
        return any(not one.was_killed and one.deadline > now for one in self._processes.values())

    def _tell_when_ready(self) -> None:
        """After the start, and after a reload: when each number has a worker that goes on."""
        is_over = not self._to_replace and not self._again and self._serving() == self._count
        if is_over and not self._was_ready:
            self._was_ready = True
            _log.info("ready", workers=self._count, message="")
            self._notifier.ready(self._status)
        elif is_over and self._is_reloading:
            self._is_reloading = False
            self._facts.reloads["done"] += 1
            _log.info("reloaded", workers=self._count, message="")
            self._notifier.ready(self._status)

    def _kill_overdue(self) -> None:
        now = self._now()
        for process in self._processes.values():
            if process.deadline > now:
                continue
            if process.was_told_to_stop:
                process.warn("worker does not stop", "does not stop; killing it.")
            elif process.serves:
                process.is_hung = True
                sentence = f"has hung for {process.patience.silence_seconds:g} s; killing it."
                process.warn("worker hung", sentence)
            else:
                sentence = f"does not serve after {process.patience.start_seconds:g} s; killing it."
                process.warn("worker does not serve", sentence)
            process.kill(now)

    def _handle_signals(self, received: bytes) -> None:
        for number in map(signal.Signals, received):
            if number in (signal.SIGTERM, signal.SIGINT) or (number == signal.SIGHUP and self._hangup_stops):
                self._stop_by = number
            elif number == signal.SIGHUP:
                self._handle_hup()
            elif number == signal.SIGCHLD:
                self._reap()

    def _handle_hup(self) -> None:
        self._notifier.reloading()
        try:
            self._job.renew()
        except Exception as error:  # whatever it is, the workers have done nothing wrong
            self._facts.reloads["refused"] += 1
            reason = self._job.explain(error)
            message = f"Not replaced, the workers go on as they are: {reason}"
            _log.error("reload refused", reason=reason, message=message)
            if self._was_ready and not self._is_reloading:
                self._notifier.ready(self._status)
        else:
            self._is_reloading = True
            _log.info("reload", message="Replacing the workers.")
            self._restart_all()

    def _restart_all(self) -> None:
        self._again = True
        if not self._to_replace:
            self._restart_next()

    def _restart_next(self) -> None:
        """Begin to replace the next worker; its successor, or its end, goes on from there.

        A new round begins when the one before is over: until then it is not known who has which settings.
        """
        while self._to_replace or self._again:
            if not self._to_replace:
                self._again = False
                running = [one.pid for one in self._processes.values() if not one.was_told_to_stop]
                self._to_replace = running
                continue
            old = self._processes.get(self._to_replace[0])
            if old is None:
                self._to_replace.pop(0)
            elif self._overlap:
                self._start(old.number)
                return
            else:
                old.terminate(REPLACED, self._now())
                return

    def _reap(self) -> None:
        """Take in every worker that has ended."""
        for process in list(self._processes.values()):
            code = process.reap()
            if code is not None:
                del self._processes[process.pid]
                self._ended(process, code)

    def _ended(self, process: Process, code: int) -> None:
        others = [other for other in self._processes.values() if other.number == process.number]
        if self._to_replace and self._to_replace[0] == process.pid:
            self._to_replace.pop(0)
            if not others:
                self._start(process.number)
            self._restart_next()
        elif any(not other.was_told_to_stop for other in others):
            self._to_replace.clear()
            self._facts.reloads["failed"] += 1
            _log.error(
                "new worker ended",
                worker=process.number,
                pid=process.pid,
                code=code,
                message=f"The new worker {process.number} ended with {code} before it served;"
                " the old one goes on.",
            )
            self._restart_next()
            if not self._to_replace:
                self._is_reloading = False
                self._notifier.ready(self._status)
        else:
            cause = "hung" if process.is_hung else "signal" if code < 0 else "exit"
            self._facts.restarts[cause] += 1
            sentence = f"ended with {code}; starting another one."
            process.warn("worker ended", sentence, code=code, cause=cause)
            self._keep_alive(process)

    def _keep_alive(self, process: Process) -> None:
        """Start a dead worker anew. One that was such a one itself and lived for seconds only has to wait,
        and when no other one is left, the service ends."""
        now = self._now()
        if not process.is_second or now - process.began >= _SHORT_LIFE_SECONDS:
            self._start(process.number, is_second=True)
        elif self._processes:
            sentence = "died twice within seconds; the log says why. Trying again soon."
            process.warn("worker died twice", sentence)
            self._resting[process.number] = now + _SHORT_LIFE_SECONDS
        else:
            raise WorkerFailed

    def _start_rested(self) -> None:
        now = self._now()
        for number in [number for number, until in self._resting.items() if until <= now]:
            del self._resting[number]
            self._start(number, is_second=True)

    def _terminate_all(self, number: signal.Signals) -> None:
        self._is_stopping = True
        self._notifier.stopping()
        _log.info("stop", signal=number.name, message="Stopping.")
        self._job.before_stop()
        self._resting.clear()
        for process in self._processes.values():
            process.terminate(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM, self._now())

    def _join_all(self) -> None:
        """Wait for the end of every worker; a later SIGINT cuts the pause short."""
        while self._processes:
            if signal.SIGINT in self._wait():
                for process in self._processes.values():
                    process.terminate(signal.SIGINT, self._now())
            for process in list(self._processes.values()):
                code = process.reap()
                if code is not None:
                    del self._processes[process.pid]
                    self._is_clean = self._is_clean and code == 0
