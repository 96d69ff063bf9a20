"""One worker's process as its parent has it: forked, heard over a pipe, told to stop, killed, reaped.

What is done about it, and when, is decided in supervisor.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable

import msgspec
import structlog

from petstore.server.signals import TAKEN, SignalPipe

REPLACED = signal.SIGUSR1  # what a worker is told whose place another one takes
_START_SECONDS = 30.0
_READY, _ALIVE = b"r", b"."

_log = structlog.get_logger("petstore.worker")


class Patience(msgspec.Struct, frozen=True):
    """How long a worker may take to stop, may be silent while it serves, and may take until it serves."""

    stop_seconds: float
    silence_seconds: float

    @property
    def start_seconds(self) -> float:
        return max(_START_SECONDS, self.silence_seconds)


class Report:
    """The worker's end of the pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ready(self) -> None:
        """Tell the parent that this worker serves."""
        self._say(_READY)

    def alive(self) -> None:
        """Tell the parent that the event loop turns; to be called about once a second."""
        self._say(_ALIVE)

    def _say(self, word: bytes) -> None:
        # A parent that is stopped does not read, and one that was killed will not.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._pipe, word)


class Process:
    """A worker. Moments are seconds on the parent's clock."""

    def __init__(self, pid: int, number: int, began: float, pipe: int, patience: Patience) -> None:
        self.pid = pid
        self.number = number
        self.began = began
        self.patience = patience
        self.serves = False
        self.is_second = False  # started because one before it had died
        self.heard_at = began
        self.is_hung = False
        self.was_killed = False
        self.kill_at: float | None = None  # set once it was told to stop
        self._pipe = pipe

    @classmethod
    def start(
        cls,
        number: int,
        work: Callable[[Report], int],
        signals: SignalPipe,
        began: float,
        patience: Patience,
    ) -> Process:
        """Fork a worker that does the `work` and ends with the exit code that it gives. Raises OSError."""
        _flush()
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        parent = os.getpid()
        # A signal that the child took before it let go of the parent's pipe would reach the parent.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
        try:
            pid = os.fork()
            if pid == 0:
                os.close(reader)
                _live(lambda: work(Report(writer)), signals, parent)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return cls(pid, number, began, reader, patience)

    def fileno(self) -> int:
        """The parent's end of the pipe; -1 when the worker has closed its own."""
        return self._pipe

    def listen(self, now: float) -> None:
        """Take in what the worker has said. An end without a word is for SIGCHLD to tell."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._pipe, 65_536)
            self.serves = self.serves or _READY in said
            self.heard_at = now
            if not said:
                self.hang_up()

    @property
    def deadline(self) -> float:
        """When it has to be killed, unless something happens before."""
        if self.kill_at is not None:
            return self.kill_at
        if self.serves:
            return self.heard_at + self.patience.silence_seconds
        return self.began + self.patience.start_seconds

    @property
    def was_told_to_stop(self) -> bool:
        return self.kill_at is not None

    def terminate(self, number: signal.Signals, now: float) -> None:
        """Tell the worker to stop, by a signal. The first one sets the moment at which it will be killed."""
        if self.kill_at is None:
            self.kill_at = now + self.patience.stop_seconds
        self.send(number)

    def kill(self, now: float) -> None:
        self.kill_at = now + self.patience.stop_seconds  # to be tried again
        self.was_killed = True
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def reap(self) -> int | None:
        """The exit code of a worker that has ended, or minus the signal's number; None while it lives."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.hang_up()
        return os.waitstatus_to_exitcode(status)

    def warn(self, event: str, sentence: str, **fields: object) -> None:
        """Log what became of this worker."""
        message = f"Worker {self.number} {sentence}"
        _log.warning(event, worker=self.number, pid=self.pid, **fields, message=message)

    def hang_up(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def _live(work: Callable[[], int], signals: SignalPipe, parent: int) -> None:
    """The child's whole life. What it may be told waits, blocked, until its work heeds it."""
    code = 1
    try:
        signals.close()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGTERM, signal.SIGINT, REPLACED})
        _die_with_parent()
        if os.getppid() == parent:  # else it has ended before the kernel was told to mind
            code = work()
    except BaseException:
        _log.critical("worker failed", exc_info=True)
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    """What is left in Python's buffers would be written by nobody, or by two."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # a service may be started without them
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def _die_with_parent() -> None:
    """A parent that is killed leaves no worker behind (Linux)."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
