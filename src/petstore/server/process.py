"""The parent's handle of a worker process: fork, pipe, signals, kill, reap. supervisor.py has the policy."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import sys
from collections.abc import Callable

import msgspec
import structlog

from petstore.server.signals import TAKEN, SignalPipe

REPLACED = signal.SIGIO  # tells a worker to stop because another one takes its place
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, REPLACED)  # blocked until a worker handles them
_START_SECONDS = 30.0
# What was accepted has this time when the service stops, so that all ends within 10 s: then managers of
# containers kill. A worker that is replaced has the whole timeout of a body.
FINISH_SECONDS_MAX = 5.0
BACKGROUND = -1  # the number of the process that carries out jobs
_READY, _HEARTBEAT = b"r", b"."

_log = structlog.get_logger("petstore.worker")


def name_of(number: int) -> str:
    """A process in messages."""
    return "The background process" if number == BACKGROUND else f"Worker {number}"


class Timeouts(msgspec.Struct, frozen=True):
    """How long a worker may take to stop, with the service or for a successor, and may send no heartbeat
    while it serves."""

    stop_seconds: float
    replaced_seconds: float
    heartbeat_seconds: float

    @property
    def start_seconds(self) -> float:
        return max(_START_SECONDS, self.heartbeat_seconds)


class ReportPipe:
    """The worker's end of its pipe, and the parent's ends of the pipes of workers that it follows."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._before: list[int] = []
        self.has_waited = False

    def follow(self, pipe: int) -> None:
        """`await_predecessor` waits for the worker at the other end."""
        self._before.append(pipe)

    def await_predecessor(self) -> None:
        """Block until the workers that this one follows have ended, whatever they still report."""
        for pipe in self._before:
            ending = select.poll()
            ending.register(pipe, 0)  # the end of the process alone, since the parent reads the rest
            ending.poll()
            os.close(pipe)
            self.has_waited = True
        self._before.clear()

    def ready(self) -> None:
        """Report to the parent that this worker serves."""
        self._send(_READY)

    def heartbeat(self) -> None:
        """Report to the parent that the event loop runs; call it about once a second."""
        self._send(_HEARTBEAT)

    def _send(self, message: bytes) -> None:
        # The pipe of a stopped parent fills up; a killed parent's is broken.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._pipe, message)


class Process:
    """A worker. Times are seconds on the parent's clock."""

    def __init__(self, pid: int, number: int, started_at: float, pipe: int, timeouts: Timeouts) -> None:
        self.pid = pid
        self.number = number
        self.started_at = started_at
        self.timeouts = timeouts
        self.is_ready = False
        self.is_restart = False  # replaces a worker that died
        self.is_hung = False
        self.waits_seconds = 0.0  # at most, for the end of the worker that it follows
        self.was_killed = False
        self._heartbeat_at = started_at
        self._kill_at = math.inf  # set by the first signal to stop
        self._pipe = pipe

    @classmethod
    def start(
        cls,
        number: int,
        work: Callable[[ReportPipe], int],
        signals: SignalPipe,
        started_at: float,
        timeouts: Timeouts,
    ) -> Process:
        """Fork a worker that calls `work` and exits with its result. Raises OSError."""
        _flush()
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        parent = os.getpid()
        # A signal to the child would reach the parent until the child closes the parent's signal pipe.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
        try:
            pid = os.fork()
            if pid == 0:
                os.close(reader)
                _run_child(lambda: work(ReportPipe(writer)), signals, parent)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return cls(pid, number, started_at, reader, timeouts)

    def fileno(self) -> int:
        """The parent's end of the pipe; -1 once it is closed."""
        return self._pipe

    def read_reports(self, now: float) -> None:
        """Read what the worker reported. At the end of the file only the pipe is closed: SIGCHLD follows."""
        with contextlib.suppress(BlockingIOError):
            received = os.read(self._pipe, 65_536)
            if _READY in received:
                self.is_ready, self.waits_seconds = True, 0.0
            self._heartbeat_at = now
            if not received:
                self.close_pipe()

    @property
    def deadline(self) -> float:
        """When to kill the worker, unless it reports or ends before."""
        if self.is_stopping:
            return self._kill_at
        if self.is_ready:
            return self._heartbeat_at + self.timeouts.heartbeat_seconds
        return self.started_at + self.waits_seconds + self.timeouts.start_seconds

    @property
    def is_stopping(self) -> bool:
        return self._kill_at < math.inf

    def terminate(self, number: signal.Signals, now: float) -> None:
        """Send a signal to stop. The first one of a kind sets the deadline, if it is earlier."""
        timeouts = self.timeouts
        seconds = timeouts.replaced_seconds if number == REPLACED else timeouts.stop_seconds
        self._kill_at = min(self._kill_at, now + self.waits_seconds + seconds)
        self.send(number)

    def kill_overdue(self, now: float) -> None:
        """Log which timeout was exceeded, and kill."""
        if self.is_stopping:
            self.warn("worker does not stop", "does not stop; killing it.")
        elif self.is_ready:
            self.is_hung = True
            self.warn("worker hung", f"has hung for {self.timeouts.heartbeat_seconds:g} s; killing it.")
        else:
            seconds = self.waits_seconds + self.timeouts.start_seconds
            sentence = f"does not serve after {seconds:g} s; killing it."
            self.warn("worker does not serve", sentence)
        self._kill_at = now + self.timeouts.stop_seconds  # then it is tried again
        self.was_killed = True
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def reap(self) -> int | None:
        """The exit code of an ended worker, or minus its signal's number; None while it lives."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.close_pipe()
        return os.waitstatus_to_exitcode(status)

    def warn(self, event: str, sentence: str, **fields: object) -> None:
        """Log a warning about this worker."""
        message = f"{name_of(self.number)} {sentence}"
        _log.warning(event, worker=self.number, pid=self.pid, **fields, message=message)

    def close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def _run_child(work: Callable[[], int], signals: SignalPipe, parent: int) -> None:
    """Never returns. Signals to stop stay blocked until `work` handles them."""
    code = 1
    try:
        signals.close()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, STOP_SIGNALS)
        _die_with_parent()
        if os.getppid() == parent:  # a parent that ended before the prctl sends no signal
            code = work()
    except BaseException:
        _log.critical("worker failed", exc_info=True)
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    """Write buffered output before fork and _exit: else it would be written twice or never."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as in a service that was started without them
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def _die_with_parent() -> None:
    """Receive SIGTERM when the parent ends (Linux)."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
