"""Writers of log lines: a thread where requests are served, the caller itself in a process that forks.

A reader of standard error that stops reading costs log lines; requests and the stop do not wait for it.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from petstore.ops.access_log import AccessEntry

_WAITING_MAX = 100_000
_BATCH_MAX = 10_000
# Short, so that a batch is still in the processor's cache.
_PAUSE_SECONDS = 0.02
_WAKE = b""
_CLOSE_SECONDS = 1.0
_DIRECT_WAIT_MS = 100


class DirectWriter:
    """Writes without a thread, for a process that forks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, line: str) -> None:
        """Write a line; drop the rest of it if standard error stays full for 0.1 s."""
        rest = memoryview(_encoded(line))
        try:
            # A writable pipe takes PIPE_BUF bytes without blocking.
            while rest and _is_writable(self._descriptor, _DIRECT_WAIT_MS):
                rest = rest[os.write(self._descriptor, rest[: select.PIPE_BUF]) :]
        except (OSError, ValueError):
            pass  # nowhere to report it


class LogWriter:
    """A queue and the thread that writes it; drops and counts lines beyond 100,000 waiting ones.

    `render` formats an entry of the access log; lines go to `descriptor`.
    """

    def __init__(self, render: Callable[[AccessEntry], bytes], descriptor: int) -> None:
        self._render = render
        self.descriptor = descriptor
        self._queue: SimpleQueue[AccessEntry | bytes] = SimpleQueue()
        self._closing = threading.Event()
        self._refused = 0
        self._unwritten = 0
        self._thread = self._start(self._run)

    @property
    def dropped(self) -> int:
        """Lines not written: the queue was full, or the write failed."""
        return self._refused + self._unwritten

    def record(self, entry: AccessEntry) -> None:
        """Queue an entry of the access log."""
        self._put(entry)

    def write(self, line: str) -> None:
        """Queue a line of another logger; after `close`, write it, since a failed start is logged last."""
        self._put(_encoded(line))
        if self._closing.is_set() and not self._thread.is_alive():
            self._thread = self._start(self._write_waiting)
            self._thread.join(_CLOSE_SECONDS)

    def close(self) -> None:
        """Write the queue and end the thread; give up after a second."""
        self._closing.set()
        self._queue.put(_WAKE)
        self._thread.join(_CLOSE_SECONDS)

    def _put(self, line: AccessEntry | bytes) -> None:
        if self._queue.qsize() < _WAITING_MAX:
            self._queue.put(line)
        else:
            self._refused += 1

    def _start(self, target: Callable[[], None]) -> threading.Thread:
        # A daemon: a blocked write must not delay the end of the process.
        thread = threading.Thread(target=target, name="petstore-log", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self._closing.is_set():
            first = self._queue.get()  # a log without lines costs nothing
            self._closing.wait(_PAUSE_SECONDS)
            self._write([first, *self._take()])
        self._write_waiting()

    def _write_waiting(self) -> None:
        while lines := self._take():
            self._write(lines)

    def _write(self, lines: list[AccessEntry | bytes]) -> None:
        render = self._render
        try:
            self._write_all(b"".join([one if isinstance(one, bytes) else render(one) for one in lines]))
        except (OSError, ValueError):
            self._unwritten += len(lines) - lines.count(_WAKE)

    def _take(self) -> list[AccessEntry | bytes]:
        lines: list[AccessEntry | bytes] = []
        try:
            while len(lines) < _BATCH_MAX:
                lines.append(self._queue.get_nowait())
        except Empty:
            pass
        return lines

    def _write_all(self, content: bytes) -> None:
        """Bypass Python's buffer, whose lock a blocked write would hold."""
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:  # another process that shares the pipe made it non-blocking
                _is_writable(self.descriptor, None)


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"


def _is_writable(descriptor: int, wait_ms: int | None) -> bool:
    """Wait until it is (None: without limit). Unlike select(), poll() takes any descriptor."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLOUT)
    return bool(waiting.poll(wait_ms))
