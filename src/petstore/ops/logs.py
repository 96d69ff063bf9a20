"""The format of every log line, by structlog; log_writers.py writes them.

JSON unless standard error is a terminal, with `time`, `level` and `event` first. As text, an event with a
`message` is shown as that sentence; one with an empty message is left out. `mark` begins each line of text:
two services may share a terminal.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import partial

import msgspec
import structlog
from structlog.typing import EventDict, Processor

from petstore.ops.access_log import AccessFormat
from petstore.ops.log_writers import DirectWriter, LogWriter

_NOWHERE = -1
# sd-daemon(3). Lines without a prefix have the unit's SyslogLevel=, info by default.
_PRIORITIES = {"debug": "<7>", "info": "<6>", "warning": "<4>", "error": "<3>", "critical": "<2>"}


class Output(msgspec.Struct, frozen=True):
    """`is_journal`: standard error is systemd's journal, which reads priorities; `is_terminal`: only people
    read it."""

    descriptor: int
    as_json: bool
    is_journal: bool
    is_terminal: bool


class _Forwarder(logging.Handler):
    """Makes lines of this log of what packages log by the standard library, from warnings on.

    Without it logging's last resort would write them to standard error as they are.
    """

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
            structlog.get_logger().log(
                level, record.getMessage(), logger=record.name, exc_info=record.exc_info
            )
        except Exception:
            self.handleError(record)


class _Printer:
    """structlog's logger: a method for each level."""

    def __init__(self, write: Callable[[str], None], *, priorities: bool) -> None:
        for level, priority in _PRIORITIES.items():
            setattr(self, level, partial(_write_with, priority, write) if priorities else write)


def start(
    level: str,
    log_format: str,
    descriptor: int | None = None,
    *,
    access: AccessFormat | None = None,
    journal_stream: str = "",
    worker: int | None = None,
    mark: str = "",
) -> LogWriter:
    """Configure structlog for a process that serves requests; the writer also takes the access log.

    `journal_stream`: systemd's JOURNAL_STREAM, `device:inode`. `worker` is a field of each event.
    """
    output = _output(log_format, descriptor, journal_stream)
    access = access or AccessFormat()
    writer = LogWriter(access.json_line if output.as_json else access.text_line, output.descriptor)
    _configure(level, output, writer.write, {} if worker is None else {"worker": worker}, mark)
    return writer


def start_directly(
    level: str, log_format: str, descriptor: int | None = None, *, journal_stream: str = "", mark: str = ""
) -> Output:
    """Configure structlog for a process that forks: each line is written by the caller."""
    output = _output(log_format, descriptor, journal_stream)
    _configure(level, output, DirectWriter(output.descriptor).write, {}, mark)
    return output


def _output(log_format: str, descriptor: int | None, journal_stream: str) -> Output:
    descriptor = _standard_error() if descriptor is None else descriptor
    is_terminal = os.isatty(descriptor)
    as_json = log_format == "json" or (log_format == "auto" and not is_terminal)
    return Output(descriptor, as_json, _is_stream(descriptor, journal_stream), is_terminal)


def _configure(level: str, output: Output, write: Callable[[str], None], more: EventDict, mark: str) -> None:
    logging.root.handlers = [each for each in logging.root.handlers if not isinstance(each, _Forwarder)]
    logging.root.addHandler(_Forwarder())
    printer = _Printer(write, priorities=output.is_journal)
    time = structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ", utc=True, key="time")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            time,
            lambda _logger, _name, event: {**event, **more},
            *(_as_json() if output.as_json else _as_text(mark, colors=output.is_terminal)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=lambda *_: printer,
    )


def _as_json() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        _ordered,
        structlog.processors.JSONRenderer(separators=(",", ":")),
    ]


def _as_text(mark: str, *, colors: bool) -> list[Processor]:
    # The default exception formatter shows the values of variables and opens files.
    console = structlog.dev.ConsoleRenderer(
        colors=colors,
        pad_event_to=0,
        timestamp_key="time",
        exception_formatter=structlog.dev.plain_traceback,
    )

    def render(logger: object, name: str, event: EventDict) -> str:
        message: str | None = event.get("message")
        if message == "":
            raise structlog.DropEvent
        return mark + (console(logger, name, event) if message is None else message)

    return [render]


def _ordered(_logger: object, _name: str, event: EventDict) -> EventDict:
    first = {name: event.pop(name) for name in ("time", "level", "event")}
    if event.get("message") == "":
        del event["message"]
    return {**first, **event}


def _write_with(priority: str, write: Callable[[str], None], line: str) -> None:
    """Each line of a trace is an entry of the journal and needs the prefix."""
    write(priority + line.replace("\n", f"\n{priority}"))


def _is_stream(descriptor: int, stream: str) -> bool:
    """Whether the descriptor is JOURNAL_STREAM and was not redirected since."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"


def _standard_error() -> int:
    """The descriptor of standard error; -1 without one, since 2 may have been reused for another file."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return _NOWHERE
