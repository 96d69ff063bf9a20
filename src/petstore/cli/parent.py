"""The parent of the workers: what they are for, what SIGHUP changes, and how long they have to stop."""

from __future__ import annotations

import contextlib
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec
import structlog

# Imported before the fork, so that a worker is quick to start and shares the memory.
import petstore.server.worker
from petstore import config
from petstore.cli.groups import EXIT_CUT_SHORT, EXIT_REFUSED
from petstore.config import Settings
from petstore.config.surroundings import read_surroundings
from petstore.core.clock import SystemClock
from petstore.core.errors import ConfigurationError, OperatorError, PetstoreError
from petstore.ops.supervision import Supervision, leave
from petstore.server import program
from petstore.server.job import Facts, WorkerFailed
from petstore.server.notify import Notifier
from petstore.server.process import Patience, Report
from petstore.server.supervisor import Supervisor
from petstore.wiring import administration, service

_log = structlog.get_logger("petstore.parent")

# After the deadline for bodies: answers that nobody reads are cut off, the counters saved, the store closed.
_STOP_MARGIN_SECONDS = 3

_SET_UP_AT_START = ("host", "port", "workers")
_COUNTS_PREFIX = "petstore-metrics-"
_LEFT_BEHIND_SECONDS = 3_600


class Serving:
    """Implements supervisor.Job: the listener, and the settings in force, which SIGHUP renews."""

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        connections: int,
        counts_directory: Path | None,
        configured: Settings | None = None,
    ) -> None:
        """`configured`: the settings without the options of the command line, where there were any."""
        self._configured = configured or settings
        self._counts_directory = counts_directory
        self._settings = settings
        self._listener = listener
        self._connections = connections
        self._installed = program.Installed(SystemClock().monotonic)
        self._left: Supervision | None = None

    def work(self, number: int, report: Report) -> int:
        return petstore.server.worker.run(
            self._settings,
            number,
            self._counts_directory,
            lambda application: petstore.server.worker.HttpServer(
                application.answer, self._listener, self._connections
            ),
            report,
        )

    @property
    def patience(self) -> Patience:
        settings = self._settings
        return Patience(
            stop_seconds=(settings.body_timeout_ms + settings.drain_ms) / 1_000 + _STOP_MARGIN_SECONDS,
            silence_seconds=settings.worker_timeout_ms / 1_000,
        )

    def renew(self) -> None:
        self._installed.look(now=True)
        new = config.load()
        self._settings = _renewed(self._settings, new)
        service.start_log_of_parent(self._settings)
        for name in _SET_UP_AT_START:
            if getattr(new, name) != getattr(self._configured, name):
                setting, kept = f"PETSTORE_{name.upper()}", getattr(self._settings, name)
                message = f"{setting} waits for a restart: the service goes on with {kept}."
                _log.warning("restart needed", setting=setting, message=message)

    def observe(self, facts: Facts) -> None:
        """Leave what has changed to the workers, which show it."""
        self._installed.look()
        seen = Supervision(
            facts.workers, dict(facts.restarts), dict(facts.reloads), self._installed.is_replaced
        )
        if self._counts_directory is not None and seen != self._left:
            self._left = seen
            try:
                leave(self._counts_directory, seen)
            except OSError as error:
                message = f"Metrics of the parent not written: {error.strerror}."
                _log.warning("metrics not written", reason=error.strerror, message=message)

    def explain(self, error: Exception) -> str:
        """What nobody foresaw may quote a secret: only its kind and its place are told."""
        if isinstance(error, OperatorError):
            return " ".join(str(error).split())
        if isinstance(error, PetstoreError):
            return error.message
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"an unexpected {type(error).__name__} at {Path(last.filename).name}:{last.lineno}."

    def before_stop(self) -> None:
        self._listener.close()


def _renewed(old: Settings, new: Settings) -> Settings:
    """The new settings, but for what the parent has set up.

    Raises ConfigurationError, and StoreUnavailable when workers that can't serve side by side would not come
    back with them.
    """
    _refuse_another("PETSTORE_DATABASE_URL", old.database_url, new.database_url)
    _refuse_another("PETSTORE_VALKEY_URL", old.valkey_url, new.valkey_url)
    new = msgspec.structs.replace(new, **{name: getattr(old, name) for name in _SET_UP_AT_START})
    config.check(new)
    backend = administration.backend_of(new)
    if backend.file is None and not new.valkey_url:
        backend.exists()
    return new


def _refuse_another(name: str, old: str, new: str) -> None:
    """Another user or password may come into force; another place would be used beside the one before."""
    try:
        same = _is_same_place(old, new)
    except ValueError:  # whose text may show a part of the password
        raise ConfigurationError(
            f"{name} is not understood. Write what is special in its password as %XX, such as %5B for [."
        ) from None
    if not same:
        raise ConfigurationError(
            f"{name}: another one needs a stop of every service that uses it, and a start."
        )


def _is_same_place(one: str, other: str) -> bool:
    """Whether two URLs differ in user and password alone. Raises ValueError for one that can't be parsed."""
    before, after = (
        url._replace(netloc=url.netloc.rpartition("@")[2]) for url in (urlsplit(one), urlsplit(other))
    )
    return before == after


@contextlib.contextmanager
def counts_directory() -> Iterator[Path | None]:
    """Where workers leave their metrics to each other and to their successors, and the parent its own.

    In memory where that is possible, since they write there every second, and a disk may make them wait.
    """
    for place in ("/dev/shm", None):
        with contextlib.suppress(OSError):
            directory = tempfile.TemporaryDirectory(prefix=_COUNTS_PREFIX, dir=place)
            break
    else:
        _log.warning(
            "no directory for metrics",
            message="There is no directory for temporary files: each worker shows its own metrics alone.",
        )
        yield None
        return
    with directory as name:
        _remove_left_behind(Path(name))
        yield Path(name)


def _remove_left_behind(own: Path) -> None:
    """Those of services that were killed, which is memory: workers write into theirs every second."""
    newest = own.stat()
    for other in own.parent.glob(f"{_COUNTS_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = other.lstat()
            if found.st_uid == newest.st_uid and newest.st_mtime - found.st_mtime > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(other)


def load_program(settings: Settings, backend: administration.Backend) -> None:
    """Whatever a worker may need of it, also one that starts when another version is on the disk."""
    unused = ["petstore.cli"]
    if backend.file is not None:
        unused += ["petstore.storage.postgres", "petstore.storage.copying"]
    if not settings.valkey_url:
        unused.append("petstore.limiter.valkey")  # but for what is imported already
    program.load(but=unused)


def supervise(settings: Settings, job: Serving) -> int:
    """Until the service is told to stop; its exit code. A dead worker is started again."""
    monotonic = SystemClock().monotonic
    supervisor = Supervisor(
        job,
        count=settings.workers,
        overlap=bool(settings.valkey_url),  # else the counters are in the one process
        hangup_stops=sys.stderr is not None and sys.stderr.isatty(),
        monotonic=monotonic,
        notifier=Notifier(monotonic, read_surroundings()),
    )
    try:
        return 0 if supervisor.run() else EXIT_CUT_SHORT
    except WorkerFailed:
        message = "The service ended, since its worker died twice within seconds; the log says why."
        _log.critical("failed", message=f"petstore: {message}")
        click.get_current_context().exit(EXIT_REFUSED)
