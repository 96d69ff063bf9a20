"""The parent of the workers: binds the port, prepares the database, supervises until the stop."""

from __future__ import annotations

import contextlib
import copy
import signal
import socket
import sys
import traceback
from enum import Enum
from pathlib import Path

import structlog

# Imported before the fork: workers start faster and share the memory.
import petstore.server.background
import petstore.server.worker
from petstore import config
from petstore.config import Settings
from petstore.config.systemd import read_systemd
from petstore.core.clock import Clock, SystemClock
from petstore.core.errors import OperatorError, PetstoreError
from petstore.http.server import HttpServer
from petstore.ops.supervision import SupervisorMetrics, write_metrics
from petstore.ops.worker_metrics import metrics_directory
from petstore.server import binding, program
from petstore.server.notify import Notifier
from petstore.server.process import BACKGROUND, FINISH_SECONDS_MAX, ReportPipe, Timeouts
from petstore.server.reload import SET_UP_AT_START, renewed
from petstore.server.signals import WITHOUT_MEANING
from petstore.server.starting import ShowFirst, fitted, log_console_off, prepare
from petstore.server.supervised import WorkerFailed
from petstore.server.supervisor import Supervisor
from petstore.wiring import administration, ops

_log = structlog.get_logger("petstore.parent")

# After the body timeout: unread responses are cut off, the counters saved, the store closed.
_STOP_MARGIN_SECONDS = 3
# Loaded while the first workers start, who never need it: what sends webhooks and mail takes a quarter of the
# time to the first answer.
_OF_BACKGROUND = {"petstore.background", "petstore.wiring.jobs", "petstore.wiring.mail"}


class Ending(Enum):
    """How a service ended. CUT_SHORT: a response was cut off, or a worker killed."""

    STOPPED = "stopped"
    CUT_SHORT = "cut short"
    FAILED = "failed"


def run(settings: Settings, configured: Settings, clock: Clock, show_first: ShowFirst) -> Ending:
    """Serve until a signal to stop. `configured`: the settings without the command line's options.

    Raises OperatorError, PetstoreError and OSError. Any other exception is logged, and the ending FAILED.
    """
    for number in WITHOUT_MEANING:  # also before the supervisor takes signals, after, and in workers
        signal.signal(number, signal.SIG_IGN)
    output = ops.start_log_of_parent(settings)
    try:
        ending = _serve(settings, configured, clock, show_first if output.is_terminal else None)
    except (OperatorError, PetstoreError, OSError):
        raise
    except Exception as error:
        _log.critical("parent failed", exc_info=error)
        return Ending.FAILED
    if ending is Ending.CUT_SHORT:
        message = "Stopped, but some answers were cut off: a client did not read, or a worker did not stop."
        _log.warning("cut short", message=message)
    elif ending is Ending.STOPPED:
        _log.info("stopped", message="Stopped.")
    return ending


def _serve(settings: Settings, configured: Settings, clock: Clock, show_first: ShowFirst | None) -> Ending:
    with contextlib.ExitStack() as opened:
        # First, so that a port in use is found before the database is created.
        listener = opened.enter_context(contextlib.closing(binding.bind(settings.host, settings.port)))
        connections = binding.raise_descriptor_limit(settings.database_pool)
        backend = administration.backend_of(settings)
        if not settings.valkey_url:  # services that share a Valkey may share the database
            opened.enter_context(backend.hold_for_serving())
        prepare(settings, backend, clock, show_first)
        settings = fitted(settings, backend)
        binding.listen(listener, settings.host, settings.port)
        # Staging's workers may need that too: they send webhooks.
        program.load(but=_unused(settings) | (set() if settings.is_staging else _OF_BACKGROUND))
        metrics = opened.enter_context(metrics_directory())
        return _supervise(settings, ParentService(settings, listener, connections, metrics, configured))


def _unused(settings: Settings) -> set[str]:
    """What no process needs."""
    unused = {"petstore.cli"}
    if administration.backend_of(settings).file is not None:
        unused |= {"petstore.storage.postgres", "petstore.storage.copying"}
    if not settings.valkey_url:
        unused.add("petstore.limiter.valkey")
    return unused


def _supervise(settings: Settings, service: ParentService) -> Ending:
    monotonic = SystemClock().monotonic
    supervisor = Supervisor(
        service,
        count=settings.workers,
        overlap=bool(settings.valkey_url),  # without Valkey one process has the counters
        hangup_stops=sys.stderr is not None and sys.stderr.isatty(),
        monotonic=monotonic,
        notifier=Notifier(monotonic, read_systemd()),
    )
    try:
        return Ending.STOPPED if supervisor.run() else Ending.CUT_SHORT
    except WorkerFailed:
        message = "The service ended, since its worker died twice within seconds; the log says why."
        _log.critical("failed", message=f"petstore: {message}")
        return Ending.FAILED


class ParentService:
    """The SupervisedService: workers that share the listener; SIGHUP reloads the settings."""

    has_background = True

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        connections: int,
        metrics_directory: Path | None,
        configured: Settings,
    ) -> None:
        """`configured`: the settings without the command line's options."""
        self._configured = configured
        self._metrics_directory = metrics_directory
        self._settings = settings
        self._listener = listener
        self._connections = connections
        self._installed = program.Installed(SystemClock().monotonic)
        self._written: SupervisorMetrics | None = None

    def after_fork(self) -> None:
        program.load(but=_unused(self._settings))

    def work(self, number: int, report: ReportPipe) -> int:
        if number == BACKGROUND:
            self._listener.close()
            return petstore.server.background.run(self._settings, self._metrics_directory, report)
        return petstore.server.worker.run(
            self._settings,
            number,
            self._metrics_directory,
            lambda application: HttpServer(
                application, self._listener, self._connections, self._settings.answer_timeout_ms / 1_000
            ),
            report,
        )

    @property
    def timeouts(self) -> Timeouts:
        settings = self._settings
        body_seconds = settings.body_timeout_ms / 1_000
        others = settings.drain_ms / 1_000 + _STOP_MARGIN_SECONDS
        return Timeouts(
            stop_seconds=min(body_seconds, FINISH_SECONDS_MAX) + others,
            replaced_seconds=body_seconds + others,
            heartbeat_seconds=settings.worker_timeout_ms / 1_000,
        )

    def renew(self) -> None:
        self._installed.check(now=True)
        new = config.load()
        had_console = self._settings.has_console
        settings = renewed(self._settings, new)
        self._settings = fitted(settings, administration.backend_of(settings), self._settings.database_pool)
        ops.start_log_of_parent(self._settings)
        if had_console:
            log_console_off(self._settings)
        for name in SET_UP_AT_START:
            if getattr(new, name) != getattr(self._configured, name):
                setting, kept = f"PETSTORE_{name.upper()}", getattr(self._settings, name)
                message = f"{setting} waits for a restart: the service goes on with {kept}."
                _log.warning("restart needed", setting=setting, message=message)

    def observe(self, metrics: SupervisorMetrics) -> None:
        """Write changes into the workers' directory."""
        self._installed.check()
        metrics.is_replaced = self._installed.is_replaced
        if self._metrics_directory is not None and metrics != self._written:
            self._written = copy.deepcopy(metrics)
            try:
                write_metrics(self._metrics_directory, metrics)
            except OSError as error:
                message = f"Metrics of the parent not written: {error.strerror}."
                _log.warning("metrics not written", reason=error.strerror, message=message)

    def explain(self, error: Exception) -> str:
        """Only the class and the place of an unexpected error, since its text may quote a secret."""
        if isinstance(error, OperatorError):
            return " ".join(str(error).split())
        if isinstance(error, PetstoreError):
            return error.message
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"an unexpected {type(error).__name__} at {Path(last.filename).name}:{last.lineno}."

    def before_stop(self) -> None:
        self._listener.close()
