"""Who writes the lines of the log: a thread where requests are answered, the caller in a process that forks.

Nobody waits for standard error: a reader that has stopped reading costs lines, not answers, nor the stop.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from queue import Empty, SimpleQueue

from petstore.ops.access_log import AccessEntry

_WAITING_MAX = 100_000
_BATCH_MAX = 10_000
# So short that a batch of a busy service is still in the processor's cache when it is written.
_PAUSE_SECONDS = 0.02
_CLOSE_SECONDS = 1.0
_DIRECT_WAIT_MS = 100


class DirectWriter:
    """Writes at once, without a thread: for a process that forks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, line: str) -> None:
        """Write a line, or drop what is left of it when nobody takes it within a tenth of a second."""
        rest = memoryview(_encoded(line))
        try:
            # Not more at once than a pipe that is ready takes without blocking.
            while rest and _is_writable(self._descriptor, _DIRECT_WAIT_MS):
                rest = rest[os.write(self._descriptor, rest[: select.PIPE_BUF]) :]
        except (OSError, ValueError):
            pass  # nobody is left who could be told


class LogWriter:
    """A queue and the thread that writes it; past 100,000 waiting lines new ones are dropped and counted.

    `render` makes lines of entries of the access log.
    """

    def __init__(self, render: Callable[[Sequence[AccessEntry]], bytes], descriptor: int) -> None:
        self._render = render
        self._descriptor = descriptor
        self._queue: SimpleQueue[AccessEntry | bytes] = SimpleQueue()
        self._closing = threading.Event()
        self._refused = 0
        self._unwritten = 0
        self._thread = self._start(self._run)

    @property
    def dropped(self) -> int:
        """Lines that were not written: too many were waiting, or standard error did not take them."""
        return self._refused + self._unwritten

    def record(self, entry: AccessEntry) -> None:
        """Take one line of the access log; it is written within a fraction of a second."""
        self._put(entry)

    def write(self, line: str) -> None:
        """Take one line about the program itself, also after the end: a failed start is told last of all."""
        self._put(_encoded(line))
        if self._closing.is_set() and not self._thread.is_alive():
            self._thread = self._start(self._write_waiting)
            self._thread.join(_CLOSE_SECONDS)

    def close(self) -> None:
        """Write what is waiting and end the thread; what nobody has read after a second is given up."""
        self._closing.set()
        self._thread.join(_CLOSE_SECONDS)

    def _put(self, line: AccessEntry | bytes) -> None:
        if self._queue.qsize() < _WAITING_MAX:
            self._queue.put(line)
        else:
            self._refused += 1

    def _start(self, target: Callable[[], None]) -> threading.Thread:
        # A daemon: one that waits for a reader must not hold up the end of the process.
        thread = threading.Thread(target=target, name="petstore-log", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self._closing.wait(_PAUSE_SECONDS):
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        while lines := self._take():
            try:
                self._write_all(b"".join(self._rendered(lines)))
            except (OSError, ValueError):
                self._unwritten += len(lines)

    def _take(self) -> list[AccessEntry | bytes]:
        lines: list[AccessEntry | bytes] = []
        try:
            while len(lines) < _BATCH_MAX:
                lines.append(self._queue.get_nowait())
        except Empty:
            pass
        return lines

    def _rendered(self, lines: list[AccessEntry | bytes]) -> list[bytes]:
        """In the order in which they came; neighbours of the access log together, which is cheaper."""
        parts: list[bytes] = []
        for is_event, group in groupby(lines, lambda line: isinstance(line, bytes)):
            if is_event:
                parts.extend(line for line in group if isinstance(line, bytes))
            else:
                parts.append(self._render([line for line in group if isinstance(line, AccessEntry)]))
        return parts

    def _write_all(self, content: bytes) -> None:
        """Past Python's buffer, whose lock would be held for as long as nobody reads."""
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # somebody who shares standard error has made it non-blocking
                _is_writable(self._descriptor, None)


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"


def _is_writable(descriptor: int, wait_ms: int | None) -> bool:
    """Whether a write is taken; None waits for it. Unlike select(), for a descriptor of any number."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLOUT)
    return bool(waiting.poll(wait_ms))
