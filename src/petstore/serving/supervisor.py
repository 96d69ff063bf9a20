"""The parent: starts workers, starts a dead one anew, replaces them on SIGHUP, ends them in order.

No signal handler does anything: each signal becomes a byte in a pipe and is taken from there, one at a time,
so that none can arrive in the middle of anything. What a worker does is handed in.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Protocol

import msgspec

from petstore.serving.signals import TAKEN, SignalPipe

REPLACED = signal.SIGUSR1  # what a worker is told whose place another one takes
_SHORT_LIFE_SECONDS = 5.0
_START_SECONDS = 30.0


class WorkerFailed(Exception):
    """A worker died twice within seconds: a third one would do the same."""


class _Worker(msgspec.Struct):
    """A process that serves. `kill_at` is set once it was told to stop, `ready` is None once it serves."""

    pid: int
    number: int
    began: float
    ready: int | None  # the end of a pipe that speaks, once, when it serves
    is_second: bool = False  # started because one before it had died
    kill_at: float | None = None


class Job(Protocol):
    """What the workers are for."""

    def work(self, number: int, ready: Callable[[], None]) -> int:
        """All that one worker does, in its own process; calls `ready` once it serves. Its exit code."""
        ...

    def renew(self) -> bool:
        """Prepare for new workers in the place of the present ones; False refuses."""
        ...

    def before_stop(self) -> None:
        """Called in the parent before the workers are told to stop."""
        ...


class Supervisor:
    """Keeps `count` processes running that do the job.

    SIGTERM stops them in order, SIGINT without a pause before, SIGHUP replaces them unless `hangup_stops`.
    `overlap`: a new worker may serve beside the one that it replaces. Otherwise it starts after its end.
    """

    def __init__(
        self,
        job: Job,
        *,
        count: int,
        overlap: bool,
        hangup_stops: bool,
        stop_seconds: float,
        say: Callable[[str], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._job = job
        self._count = count
        self._overlap = overlap
        self._hangup_stops = hangup_stops
        self._stop_seconds = stop_seconds
        self._say = say
        self._monotonic = monotonic
        self._signals = SignalPipe()
        self._workers: dict[int, _Worker] = {}
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
                self._turn()
        except WorkerFailed:
            self._stop_by = signal.SIGTERM
            raise
        finally:
            self._stop_all(self._stop_by or signal.SIGTERM)
            self._signals.close()

    def _start(self, number: int) -> _Worker:
        sys.stdout.flush()
        sys.stderr.flush()
        reader, writer = os.pipe()
        parent = os.getpid()
        # A signal that the child took before it let go of the parent's pipe would reach the parent.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
        pid = os.fork()
        if pid == 0:
            self._become_worker(number, parent, reader, writer)
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        worker = self._workers[pid] = _Worker(pid, number, self._monotonic(), reader)
        return worker

    def _become_worker(self, number: int, parent: int, reader: int, writer: int) -> None:
        """The child's whole life. What it may be told waits, blocked, until its work heeds it."""
        code = 1
        try:
            os.close(reader)
            self._signals.close()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGTERM, signal.SIGINT, REPLACED})
            _die_with_parent()
            if os.getppid() == parent:  # else it has ended before the kernel was told to mind
                code = self._job.work(number, lambda: _speak(writer))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _turn(self) -> None:
        """Wait for something to happen, and act on it."""
        received_signals = self._wait()
        self._start_rested()
        for received in received_signals:
            number = signal.Signals(received)
            if number in (signal.SIGTERM, signal.SIGINT) or (number == signal.SIGHUP and self._hangup_stops):
                self._stop_by = number
            elif number == signal.SIGHUP and self._job.renew():
                self._replace_all()
            elif number == signal.SIGCHLD:
                self._reap()

    def _wait(self) -> bytes:
        """The signals that arrived; meanwhile heed workers that became ready, and kill those that stay."""
        silent = {worker.ready: worker for worker in self._workers.values() if worker.ready is not None}
        moments = [worker.kill_at for worker in self._workers.values() if worker.kill_at is not None]
        moments += [worker.began + _START_SECONDS for worker in silent.values() if worker.kill_at is None]
        moments += self._resting.values()
        timeout = max(0.0, min(moments) - self._monotonic()) if moments else None
        readable, _, _ = select.select([self._signals.fileno(), *silent], [], [], timeout)
        for pipe in silent.keys() & set(readable):
            self._spoke(silent[pipe])
        self._kill_overdue()
        return self._signals.take() if self._signals.fileno() in readable else b""

    def _spoke(self, worker: _Worker) -> None:
        """A worker serves, or has ended without a word, which SIGCHLD tells as well."""
        assert worker.ready is not None
        serves = bool(os.read(worker.ready, 1))
        os.close(worker.ready)
        worker.ready = None
        if serves and self._overlap:
            for old in itertools.takewhile(lambda other: other is not worker, self._workers.values()):
                if old.number == worker.number:
                    self._tell(old, REPLACED)

    def _kill_overdue(self) -> None:
        now = self._monotonic()
        for worker in self._workers.values():
            if worker.kill_at is None and worker.ready is not None and worker.began + _START_SECONDS <= now:
                self._say(f"Worker {worker.number} does not serve after {_START_SECONDS:g} s.")
                worker.kill_at = now
            if worker.kill_at is not None and worker.kill_at <= now:
                self._say(f"Killing worker {worker.number}, which does not stop.")
                self._send(worker.pid, signal.SIGKILL)
                worker.kill_at = now + self._stop_seconds

    def _replace_all(self) -> None:
        self._again = True
        if not self._to_replace:
            self._replace_next()

    def _replace_next(self) -> None:
        """Begin to replace the next worker; its successor, or its end, goes on from there.

        A new round begins when the one before is over: until then it is not known who has which settings.
        """
        while self._to_replace or self._again:
            if not self._to_replace:
                self._again = False
                self._to_replace = [worker.pid for worker in self._workers.values() if worker.kill_at is None]
                continue
            old = self._workers.get(self._to_replace[0])
            if old is None:
                self._to_replace.pop(0)
            elif self._overlap:
                self._start(old.number)
                return
            else:
                self._tell(old, REPLACED)
                return

    def _reap(self) -> None:
        """Take in every worker that has ended."""
        for worker in list(self._workers.values()):
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._forget(worker)
                self._ended(worker, os.waitstatus_to_exitcode(status))

    def _forget(self, worker: _Worker) -> None:
        del self._workers[worker.pid]
        if worker.ready is not None:
            os.close(worker.ready)

    def _ended(self, worker: _Worker, code: int) -> None:
        others = [other for other in self._workers.values() if other.number == worker.number]
        if self._to_replace and self._to_replace[0] == worker.pid:
            self._to_replace.pop(0)
            if not others:
                self._start(worker.number)
            self._replace_next()
        elif any(other.kill_at is None for other in others):
            self._to_replace.clear()
            self._say(
                f"The new worker {worker.number} ended with {code} before it served; the old one goes on."
            )
            self._replace_next()
        else:
            self._say(f"Worker {worker.number} ended with {code}; starting another one.")
            self._mend(worker)

    def _mend(self, worker: _Worker) -> None:
        """Start a dead worker anew. One that was such a one itself and lived for seconds only has to wait,
        and when no other one is left, the service ends."""
        now = self._monotonic()
        if not worker.is_second or now - worker.began >= _SHORT_LIFE_SECONDS:
            self._start(worker.number).is_second = True
        elif self._workers:
            self._say(
                f"Worker {worker.number} died twice within seconds; the log says why. Trying again soon."
            )
            self._resting[worker.number] = now + _SHORT_LIFE_SECONDS
        else:
            raise WorkerFailed

    def _start_rested(self) -> None:
        now = self._monotonic()
        for number in [number for number, until in self._resting.items() if until <= now]:
            del self._resting[number]
            self._start(number).is_second = True

    def _tell(self, worker: _Worker, number: signal.Signals) -> None:
        """Tell a worker to stop, and note when it will be killed."""
        if worker.kill_at is None:
            worker.kill_at = self._monotonic() + self._stop_seconds
        self._send(worker.pid, number)

    def _stop_all(self, number: signal.Signals) -> None:
        """Pass the stop on, and wait for the end of every worker; a later SIGINT cuts the pause short."""
        self._job.before_stop()
        self._resting.clear()
        for worker in self._workers.values():
            self._tell(worker, signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
        while self._workers:
            if signal.SIGINT in self._wait():
                for worker in self._workers.values():
                    self._tell(worker, signal.SIGINT)
            for worker in list(self._workers.values()):
                if os.waitpid(worker.pid, os.WNOHANG)[0]:
                    self._forget(worker)

    def _send(self, pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _speak(pipe: int) -> None:
    os.write(pipe, b"1")
    os.close(pipe)


def _die_with_parent() -> None:
    """A parent that is killed leaves no worker behind (Linux)."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
