"""Logs: structlog for what happens, and the access log, one line a request, written by a thread of its own.

JSON when standard error is not a terminal. A line of the access log costs the request about a microsecond.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import BinaryIO

import msgspec
import structlog

_WAITING_MAX = 100_000
_PAUSE_SECONDS = 0.1


class AccessEntry(msgspec.Struct, gc=False):
    """One answered request. Never the key, and nothing that a client can write at will but the request id."""

    at_ms: int
    request_id: str
    account: int | None
    key: int | None
    operation: str
    status: int
    milliseconds: float


class _Printer:
    """Writes lines to standard error. What can't be written is lost: a broken log must not break answers."""

    def __init__(self, *_: object) -> None:
        """structlog hands over the logger's name, which is not printed."""

    def error(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    debug = info = warning = critical = error


def configure(level: str, log_format: str) -> bool:
    """Set structlog up for this process; True when lines are JSON."""
    as_json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(pad_event_to=0)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info if as_json else _unchanged,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=_Printer,
    )
    return as_json


def _unchanged(_logger: object, _name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event


def _as_json(entries: list[AccessEntry]) -> bytes:
    encoder = msgspec.json.Encoder()
    return encoder.encode_lines(
        [
            {
                "time": datetime.fromtimestamp(entry.at_ms / 1_000, UTC),
                "event": "request",
                "request_id": entry.request_id,
                "account": entry.account,
                "key": entry.key,
                "operation": entry.operation,
                "status": entry.status,
                "ms": entry.milliseconds,
            }
            for entry in entries
        ]
    )


def _as_text(entries: list[AccessEntry]) -> bytes:
    lines = []
    for entry in entries:
        time = datetime.fromtimestamp(entry.at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]
        who = "-" if entry.account is None else f"{entry.account}/{entry.key}"
        lines.append(
            f"{time} {entry.status} {entry.operation:<10} {entry.milliseconds:>8.3f} ms"
            f"  account/key {who}  request {entry.request_id}\n"
        )
    return "".join(lines).encode()


class AccessLog:
    """A queue and the thread that writes it; past 100,000 waiting lines new ones are dropped and counted."""

    def __init__(self, *, as_json: bool, stream: BinaryIO | None = None) -> None:
        self._render: Callable[[list[AccessEntry]], bytes] = _as_json if as_json else _as_text
        self._stream = stream if stream is not None else sys.stderr.buffer
        self._queue: SimpleQueue[AccessEntry] = SimpleQueue()
        self._closing = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="petstore-access-log", daemon=True)
        self._thread.start()

    def record(self, entry: AccessEntry) -> None:
        """Take one line; it is written within a fraction of a second."""
        if self._queue.qsize() < _WAITING_MAX:
            self._queue.put(entry)
        else:
            self.dropped += 1

    def close(self) -> None:
        """Write what is waiting and end the thread."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(_PAUSE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        entries = []
        try:
            while True:
                entries.append(self._queue.get_nowait())
        except Empty:
            pass
        if not entries:
            return
        try:
            self._stream.write(self._render(entries))
            self._stream.flush()
        except (OSError, ValueError):
            self.dropped += len(entries)
