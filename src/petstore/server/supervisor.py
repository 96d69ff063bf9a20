"""The parent's policy: start workers, restart dead ones, replace them on SIGHUP, stop them in order.

Signal handlers only record their signal; the loop in `run` handles one at a time. process.py is the handle of
one worker.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import structlog

from petstore.core.clock import AwakeClock
from petstore.ops.supervision import SupervisorMetrics
from petstore.server.notify import Notifier
from petstore.server.process import BACKGROUND, REPLACED, Process, name_of
from petstore.server.supervised import SupervisedService, WorkerFailed
from petstore.server.workers import Workers

# A worker that dies sooner after a restart is restarted after a delay of the same length.
_SHORT_LIFE_SECONDS = 5.0

_log = structlog.get_logger("petstore.parent")


class Supervisor:
    """Keeps `count` workers running and, once they serve, the background process if the job has one.

    SIGTERM stops them in order, SIGINT without the drain, SIGHUP replaces them unless `hangup_stops`.
    `overlap`: a new worker serves before the one that it replaces ends, otherwise it only prepares to.
    A worker that exceeds one of the service's timeouts is killed and, unless it was stopping, restarted.
    """

    def __init__(
        self,
        service: SupervisedService,
        *,
        count: int,
        overlap: bool,
        hangup_stops: bool,
        monotonic: Callable[[], float],
        notifier: Notifier | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._service = service
        self._count = count
        self._overlap = overlap
        self._hangup_stops = hangup_stops
        self._was_ready = self._is_reloading = self._is_stopping = False
        self._metrics = SupervisorMetrics()
        self._notifier = notifier or Notifier(monotonic)
        self._now = AwakeClock(monotonic)
        self._workers = Workers() if workers is None else workers
        self._to_replace: list[int] = []  # pids
        self._restart_requested = False  # by a SIGHUP during a replacement, which uses the settings before
        self._delayed: dict[int, float] = {}  # when to start a worker, by its number
        self._stop_signal: signal.Signals | None = None

    def run(self) -> bool:
        """Supervise until a signal to stop; whether no worker cut responses off. Raises WorkerFailed."""
        try:
            self.start_workers()
            while self._stop_signal is None:
                self.step()
        finally:
            self._terminate_all(self._stop_signal or signal.SIGTERM)
            is_clean = self.join_all()
            self._workers.signals.close()
        return is_clean

    def start_workers(self) -> None:
        for number in range(self._count):
            self._start(number)
        self._service.after_fork()

    def step(self) -> None:
        """Wait for a signal, a report or a deadline, at most a second, and act on it. Raises WorkerFailed."""
        received = self._wait()
        self._start_delayed()
        self._handle_signals(received)
        self._report_ready()
        self._service.observe(self._metrics)

    def _start(self, number: int, *, is_restart: bool = False) -> None:
        try:
            process = self._workers.start(
                number, self._service.work, self._now(), self._service.timeouts, follows=not self._overlap
            )
        except OSError as error:
            message = f"{name_of(number)} can't be started: {error.strerror}. Trying again soon."
            _log.error("worker not started", worker=number, reason=error.strerror, message=message)
            self._delayed[number] = self._now() + _SHORT_LIFE_SECONDS
        else:
            process.is_restart = is_restart
            self._delayed.pop(number, None)

    def _start_delayed(self) -> None:
        now = self._now()
        for number in [number for number, start_at in self._delayed.items() if start_at <= now]:
            del self._delayed[number]
            self._start(number, is_restart=True)

    def _wait(self) -> bytes:
        """The signals that arrived. Reads the workers' reports and kills overdue workers."""
        deadlines = [*(one.deadline for one in self._workers), *self._delayed.values()]
        now = self._now()
        timeout = max(0.0, min([now + self._notifier.interval_seconds, *deadlines]) - now)
        readable = self._workers.wait(timeout)
        self._now.wait_ended(timeout)
        for process in readable:
            self._read_reports(process)
        self._workers.kill_overdue(self._now())
        self._metrics.workers = self._workers.count_serving()
        if self._service.has_background:
            self._metrics.background = self._workers.has_background
        self._notifier.update(self._status, is_healthy=self._workers.is_healthy(self._now()))
        return self._workers.signals.take()

    def _read_reports(self, process: Process) -> None:
        was_ready = process.is_ready
        process.read_reports(self._now())
        if process.is_ready and not was_ready and self._overlap:
            for other in self._workers.with_number(process.number):
                if other is process:  # a worker that reports late does not replace its successor
                    break
                other.terminate(REPLACED, self._now())

    @property
    def _status(self) -> str:
        if self._is_stopping:
            return "Stopping."
        return f"{self._workers.count_serving()} of {self._count} workers serve."

    def _report_ready(self) -> None:
        """Report the end of the start or of a reload, once every worker serves."""
        is_replacing = self._to_replace or self._restart_requested
        if is_replacing or self._workers.count_serving() < self._count:
            return
        if not self._was_ready:
            self._was_ready = True
            _log.info("ready", workers=self._count, message="")
            if self._service.has_background:
                self._start(BACKGROUND)
        elif self._is_reloading:
            self._is_reloading = False
            self._metrics.reloads["done"] += 1
            _log.info("reloaded", workers=self._count, message="")
        else:
            return
        self._notifier.ready(self._status)

    def _handle_signals(self, received: bytes) -> None:
        for number in map(signal.Signals, received):
            if number in (signal.SIGTERM, signal.SIGINT) or (number == signal.SIGHUP and self._hangup_stops):
                self._stop_signal = number
            elif number == signal.SIGHUP:
                self._handle_hup()
            elif number == signal.SIGCHLD:
                for process, code in self._workers.reap():
                    self._handle_exit(process, code)
            else:
                _log.info("signal ignored", signal=number.name, message=f"{number.name} is ignored.")

    def _handle_hup(self) -> None:
        self._notifier.reloading()
        try:
            self._service.renew()
        except Exception as error:  # of any kind: the current workers still serve
            self._metrics.reloads["refused"] += 1
            reason = self._service.explain(error)
            message = f"Not replaced, the workers go on as they are: {reason}"
            _log.error("reload refused", reason=reason, message=message)
            if self._was_ready and not self._is_reloading:
                self._notifier.ready(self._status)
        else:
            self._is_reloading = True
            _log.info("reload", message="Replacing the workers.")
            self._restart_requested = True
            if not self._to_replace:
                self._replace_next()

    def _replace_next(self) -> None:
        """Start to replace the next worker; the exit of the old or the new one continues from there.

        A requested round starts after the current one, since that may mix old and new settings.
        """
        while self._to_replace or self._restart_requested:
            if not self._to_replace:
                self._restart_requested = False
                self._to_replace = [one.pid for one in self._workers if not one.is_stopping]
                continue
            old = self._workers.find(self._to_replace[0])
            if old is None:
                self._to_replace.pop(0)
            elif self._overlap:
                self._start(old.number)
                return
            else:
                if old.number != BACKGROUND:
                    self._start(old.number)
                old.terminate(REPLACED, self._now())
                return

    def _handle_exit(self, process: Process, code: int) -> None:
        others = self._workers.with_number(process.number)
        if self._to_replace and self._to_replace[0] == process.pid:
            self._to_replace.pop(0)
            if not others:
                self._start(process.number)
            self._replace_next()
        elif any(not other.is_stopping for other in others):
            self._abandon_replacement(process, code)
        else:
            cause = "hung" if process.is_hung else "signal" if code < 0 else "exit"
            self._metrics.restarts[cause] += 1
            sentence = f"ended with {code}; starting another one."
            process.warn("worker ended", sentence, code=code, cause=cause)
            self._keep_alive(process)

    def _abandon_replacement(self, process: Process, code: int) -> None:
        """A new worker ended before it served: the old ones keep serving."""
        self._to_replace.clear()
        self._metrics.reloads["failed"] += 1
        sentence = f"The new worker {process.number} ended with {code} before it served; the old one goes on."
        _log.error("new worker ended", worker=process.number, pid=process.pid, code=code, message=sentence)
        self._replace_next()
        if not self._to_replace:
            self._is_reloading = False
            self._notifier.ready(self._status)

    def _keep_alive(self, process: Process) -> None:
        """Restart a dead worker: after a delay if it was a restart itself and lived for less than 5 s.

        Raises WorkerFailed when that was the last worker.
        """
        now = self._now()
        if not process.is_restart or now - process.started_at >= _SHORT_LIFE_SECONDS:
            self._start(process.number, is_restart=True)
        elif process.number == BACKGROUND or any(one.number != BACKGROUND for one in self._workers):
            sentence = "died twice within seconds; the log says why. Trying again soon."
            process.warn("worker died twice", sentence)
            self._delayed[process.number] = now + _SHORT_LIFE_SECONDS
        else:
            raise WorkerFailed

    def _terminate_all(self, number: signal.Signals) -> None:
        self._is_stopping = True
        self._notifier.stopping()
        _log.info("stop", signal=number.name, message="Stopping.")
        self._service.before_stop()
        self._delayed.clear()
        self._workers.terminate(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM, self._now())

    def join_all(self) -> bool:
        """Wait until all ended; another SIGINT cuts the drain short. Whether no worker cut responses off."""
        is_clean = True
        while self._workers:
            if signal.SIGINT in self._wait():
                self._workers.terminate(signal.SIGINT, self._now())
            for process, code in self._workers.reap():
                # Killing the background process cuts nothing off: its job is free when its lease ends.
                is_clean = is_clean and (code == 0 or process.number == BACKGROUND)
        return is_clean
