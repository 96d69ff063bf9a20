"""The parent's policy: starts workers, starts a dead one anew, replaces them on SIGHUP, ends them in order.

No signal handler does anything: each signal becomes a byte in a pipe and is taken from there, one at a time,
so that none can arrive in the middle of anything. What a worker does is handed in; process.py is the handle
of one.
"""

from __future__ import annotations

import itertools
import selectors
import signal
from collections.abc import Callable

import structlog

from petstore.clock import AwakeClock
from petstore.serving.job import Job, WorkerFailed
from petstore.serving.process import REPLACED, Process
from petstore.serving.signals import SignalPipe

_SHORT_LIFE_SECONDS = 5.0
_START_SECONDS = 30.0
_TURN_SECONDS = 1.0

_log = structlog.get_logger("petstore.parent")


class Supervisor:
    """Keeps `count` processes running that do the job.

    SIGTERM stops them in order, SIGINT without a pause before, SIGHUP replaces them unless `hangup_stops`.
    `overlap`: a new worker may serve beside the one that it replaces. Otherwise it starts after its end.
    A worker that serves and says nothing for `silence_seconds` is killed and started anew.
    """

    def __init__(
        self,
        job: Job,
        *,
        count: int,
        overlap: bool,
        hangup_stops: bool,
        stop_seconds: float,
        silence_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._job = job
        self._count = count
        self._overlap = overlap
        self._hangup_stops = hangup_stops
        self._stop_seconds = stop_seconds
        self._was_ready = False
        self._silence_seconds = silence_seconds
        self._start_seconds = max(_START_SECONDS, silence_seconds)
        self._now = AwakeClock(monotonic)
        self._signals = SignalPipe()
        self._processes: dict[int, Process] = {}  # by pid, in the order in which they began
        self._to_replace: list[int] = []
        self._again = False  # SIGHUP came during a replacement, which began with the settings before
        self._resting: dict[int, float] = {}
        self._stop_by: signal.Signals | None = None

    def run(self) -> None:
        """Until a signal says stop. Raises WorkerFailed, after the other workers were stopped."""
        try:
            for number in range(self._count):
                self._start(number)
            while self._stop_by is None:
                received = self._wait()
                self._start_rested()
                self._handle_signals(received)
        finally:
            self._terminate_all(self._stop_by or signal.SIGTERM)
            self._join_all()
            self._signals.close()

    def _start(self, number: int) -> Process:
        process = Process.start(
            number, lambda report: self._job.work(number, report), self._signals, self._now()
        )
        self._processes[process.pid] = process
        return process

    def _wait(self) -> bytes:
        """The signals that arrived; meanwhile heed what workers say, and kill those that stay."""
        moments = [*map(self._deadline, self._processes.values()), *self._resting.values()]
        now = self._now()
        timeout = max(0.0, min([now + _TURN_SECONDS, *moments]) - now)
        self._now.wait_begins()
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            for process in self._processes.values():
                if process.fileno() >= 0:
                    selector.register(process, selectors.EVENT_READ)
            readable = [key.fileobj for key, _ in selector.select(timeout)]
        self._now.wait_ended(timeout)
        for process in list(self._processes.values()):
            if process in readable:
                self._listen(process)
        self._kill_overdue()
        return self._signals.take() if self._signals in readable else b""

    def _deadline(self, process: Process) -> float:
        return process.deadline(self._start_seconds, self._silence_seconds)

    def _listen(self, process: Process) -> None:
        served_before = process.serves
        process.listen(self._now())
        if not process.serves or served_before:
            return
        self._tell_when_ready()
        if self._overlap:
            older = itertools.takewhile(lambda other: other is not process, self._processes.values())
            for other in older:
                if other.number == process.number:
                    self._terminate(other, REPLACED)

    def _tell_when_ready(self) -> None:
        """Once, when there is a worker that serves for each number."""
        serving = {process.number for process in self._processes.values() if process.serves}
        if not self._was_ready and len(serving) == self._count:
            self._was_ready = True
            _log.info("ready", workers=self._count, message="")

    def _kill_overdue(self) -> None:
        now = self._now()
        for process in self._processes.values():
            if self._deadline(process) > now:
                continue
            if process.was_told_to_stop:
                _tell(process, "worker does not stop", "does not stop; killing it.")
            elif process.serves:
                process.is_hung = True
                sentence = f"has hung for {self._silence_seconds:g} s; killing it."
                _tell(process, "worker hung", sentence)
            else:
                sentence = f"does not serve after {self._start_seconds:g} s; killing it."
                _tell(process, "worker does not serve", sentence)
            process.kill(again_at=now + self._stop_seconds)

    def _handle_signals(self, received: bytes) -> None:
        for number in map(signal.Signals, received):
            if number in (signal.SIGTERM, signal.SIGINT) or (number == signal.SIGHUP and self._hangup_stops):
                self._stop_by = number
            elif number == signal.SIGHUP:
                self._handle_hup()
            elif number == signal.SIGCHLD:
                self._reap()

    def _handle_hup(self) -> None:
        try:
            self._job.renew()
        except Exception as error:  # whatever it is, the workers have done nothing wrong
            reason = self._job.explain(error)
            message = f"Not replaced, the workers go on as they are: {reason}"
            _log.error("reload refused", reason=reason, message=message)
        else:
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
                self._terminate(old, REPLACED)
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
            _log.error(
                "new worker ended",
                worker=process.number,
                pid=process.pid,
                code=code,
                message=f"The new worker {process.number} ended with {code} before it served;"
                " the old one goes on.",
            )
            self._restart_next()
        else:
            _tell(process, "worker ended", f"ended with {code}; starting another one.", code=code)
            self._keep_alive(process)

    def _keep_alive(self, process: Process) -> None:
        """Start a dead worker anew. One that was such a one itself and lived for seconds only has to wait,
        and when no other one is left, the service ends."""
        now = self._now()
        if not process.is_second or now - process.began >= _SHORT_LIFE_SECONDS:
            self._start(process.number).is_second = True
        elif self._processes:
            _tell(
                process,
                "worker died twice",
                "died twice within seconds; the log says why. Trying again soon.",
            )
            self._resting[process.number] = now + _SHORT_LIFE_SECONDS
        else:
            raise WorkerFailed

    def _start_rested(self) -> None:
        now = self._now()
        for number in [number for number, until in self._resting.items() if until <= now]:
            del self._resting[number]
            self._start(number).is_second = True

    def _terminate(self, process: Process, number: signal.Signals) -> None:
        """Tell a worker to stop, and note when it will be killed."""
        process.tell(number, self._now() + self._stop_seconds)

    def _terminate_all(self, number: signal.Signals) -> None:
        _log.info("stop", signal=number.name, message="Stopping.")
        self._job.before_stop()
        self._resting.clear()
        for process in self._processes.values():
            self._terminate(process, signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)

    def _join_all(self) -> None:
        """Wait for the end of every worker; a later SIGINT cuts the pause short."""
        while self._processes:
            if signal.SIGINT in self._wait():
                for process in self._processes.values():
                    self._terminate(process, signal.SIGINT)
            for process in list(self._processes.values()):
                if process.reap() is not None:
                    del self._processes[process.pid]


def _tell(process: Process, event: str, sentence: str, **fields: object) -> None:
    message = f"Worker {process.number} {sentence}"
    _log.warning(event, worker=process.number, pid=process.pid, **fields, message=message)
