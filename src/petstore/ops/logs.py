"""Logs: structlog for what happens, and the thread that writes its lines and the access log (access_log.py).

Nobody waits for standard error: a reader that has stopped reading costs lines, not answers, nor the stop.
JSON when standard error is not a terminal. A line of the access log costs the request about a microsecond.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from queue import Empty, SimpleQueue

import structlog

from petstore.ops.access_log import AccessEntry, AccessFormat

_WAITING_MAX = 100_000
_BATCH_MAX = 10_000
_PAUSE_SECONDS = 0.1
_CLOSE_SECONDS = 1.0
_NOWHERE = -1


class _Printer:
    """What structlog hands its finished lines to."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = write


def start(
    level: str, log_format: str, descriptor: int | None = None, access: AccessFormat | None = None
) -> LogWriter:
    """Set structlog up for this process, on a writer to standard error that also takes the access log."""
    descriptor = _standard_error() if descriptor is None else descriptor
    as_json = log_format == "json" or (log_format == "auto" and not os.isatty(descriptor))
    writer = LogWriter(as_json=as_json, descriptor=descriptor, access=access or AccessFormat())
    printer = _Printer(writer.write)
    # The renderer's own choice for traces shows the values of variables, and opens files for it.
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(pad_event_to=0, exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info if as_json else _unchanged,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=lambda *_: printer,
    )
    return writer


def _standard_error() -> int:
    """Its descriptor; one that takes nothing where there is none, since 2 may be another file by then."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return _NOWHERE


def _unchanged(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event


class LogWriter:
    """A queue and the thread that writes it; past 100,000 waiting lines new ones are dropped and counted."""

    def __init__(self, *, as_json: bool, descriptor: int, access: AccessFormat) -> None:
        self._render: Callable[[Sequence[AccessEntry]], bytes] = (
            access.json_lines if as_json else access.text_lines
        )
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
        self._put(line.encode("utf-8", "backslashreplace") + b"\n")
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
                waiting = select.poll()  # unlike select(), for a descriptor of any number
                waiting.register(self._descriptor, select.POLLOUT)
                waiting.poll()
