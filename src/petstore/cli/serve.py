"""`petstore serve`: checks what can be checked before the start, then keeps workers running."""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
import sys
import tempfile
import threading
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.groups import examples
from petstore.cli.migrating import MigrationLog
from petstore.cli.running import Session, with_store
from petstore.clock import SystemClock
from petstore.errors import ConfigurationError, Conflict, PetstoreError
from petstore.plans import FREE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from petstore.config import Settings
    from petstore.opening import Store
    from petstore.serving.process import Report

_CONNECTIONS_MAX = 16_384
_DESCRIPTORS_KEPT_BACK = 128
_BIND_ATTEMPTS, _BIND_PAUSE_SECONDS = 40, 0.05
_STOP_MARGIN_SECONDS = 2  # a body may still be arriving when the service is told to stop
_say = partial(click.echo, err=True)


@click.command(
    epilog=examples(
        "petstore serve",
        "PETSTORE_HOST=0.0.0.0 PETSTORE_PORT=9000 petstore serve",
        "petstore serve --workers 4",
    )
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that serve, as PETSTORE_WORKERS.")
@click.pass_obj
def serve(session: Session, workers: int | None) -> None:
    """Run the service until it is told to stop.

    Ctrl+C or SIGTERM stops it: what was accepted is carried out first. SIGHUP reads the settings anew and
    replaces the workers one by one (on a terminal it stops the service, since the terminal was closed).

    Creates the database when there is none, and migrates one as PETSTORE_MIGRATE says. On the first start,
    and only on a loopback address, it issues a key on the Free plan for an account "local", printed once.
    """
    from petstore import build, migrating, opening

    build.commit()  # for the workers: by the time one is started, the checkout may have moved on
    settings = _with_workers(session.settings, workers)
    with contextlib.closing(_bind(settings)) as listener:
        connections = _raise_descriptor_limit()
        with opening.lock_for_serving(settings):
            for warning in opening.warnings_before_start(settings):
                _say(warning)
            migrating.migrate_for_serving(settings, session.clock, MigrationLog(_say))
            with_store(session, partial(_welcome, settings), create=True)
            if remark := migrating.remark(settings):
                _say(f"Note: {remark}.")
            _listen(listener, settings)
            with _counts_directory(settings) as counts:
                _supervise(settings, _Serving(settings, listener, connections, counts))
    _say("Stopped.")


def _with_workers(settings: Settings, workers: int | None) -> Settings:
    """The settings with the option's number of workers, when it was given."""
    from petstore import config

    if workers is not None:
        settings = msgspec.structs.replace(settings, workers=workers)
        config.check(settings)
    return settings


class _Serving:
    """Implements supervisor.Job: the listener, and the settings in force, which SIGHUP renews."""

    def __init__(
        self, settings: Settings, listener: socket.socket, connections: int, counts_directory: Path | None
    ) -> None:
        self._counts_directory = counts_directory
        self._settings = settings
        self._listener = listener
        self._connections = connections

    def work(self, number: int, report: Report) -> int:
        from petstore.serving import worker

        return worker.run(
            self._settings,
            number,
            self._counts_directory,
            lambda application: worker.HttpServer(application.answer, self._listener, self._connections),
            report,
        )

    def renew(self) -> None:
        self._settings = _renewed(self._settings)

    def explain(self, error: Exception) -> str:
        """What nobody foresaw may quote a secret: only its kind and its place are told."""
        if isinstance(error, ConfigurationError):
            return " ".join(str(error).split())
        if isinstance(error, PetstoreError):
            return error.message
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"an unexpected {type(error).__name__} at {Path(last.filename).name}:{last.lineno}."

    def before_stop(self) -> None:
        self._listener.close()


def _renewed(old: Settings) -> Settings:
    """The settings as they are now. Raises ConfigurationError, and StoreUnavailable when workers that can't
    serve side by side would not come back with them.
    """
    from petstore import config, opening

    new = config.load()
    _refuse_another("PETSTORE_DATABASE_URL", old.database_url, new.database_url)
    _refuse_another("PETSTORE_VALKEY_URL", old.valkey_url, new.valkey_url)
    # What the parent itself has set up stays as it is.
    new = msgspec.structs.replace(new, host=old.host, port=old.port, workers=old.workers)
    config.check(new)
    if opening.uses_server(new) and not new.valkey_url:
        opening.has_database(new)
    return new


def _refuse_another(name: str, old: str, new: str) -> None:
    """Another user or password may come into force; another place would be used beside the one before."""
    from petstore import opening

    try:
        same = opening.is_same_place(old, new)
    except ValueError:  # whose text may show a part of the password
        raise ConfigurationError(
            f"{name} is not understood. Write what is special in its password as %XX, such as %5B for [."
        ) from None
    if not same:
        raise ConfigurationError(
            f"{name}: another one needs a stop of every service that uses it, and a start."
        )


@contextlib.contextmanager
def _counts_directory(settings: Settings) -> Iterator[Path | None]:
    """Where workers leave their metrics to each other, when there may be more than one."""
    if not settings.valkey_url:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="petstore-") as directory:
        yield Path(directory)


def _supervise(settings: Settings, job: _Serving) -> None:
    """Until the service is told to stop; a worker that dies is started again, unless it dies at once."""
    # Imported before the fork, so that a worker is quick to start and shares the memory.
    import petstore.serving.worker  # noqa: F401
    from petstore.serving.supervisor import Supervisor, WorkerFailed

    supervisor = Supervisor(
        job,
        count=settings.workers,
        overlap=bool(settings.valkey_url),  # else the counters are in the one process
        hangup_stops=sys.stderr.isatty(),
        stop_seconds=(settings.body_timeout + settings.drain) / 1_000 + _STOP_MARGIN_SECONDS,
        say=_say,
        monotonic=SystemClock().monotonic,
    )
    try:
        supervisor.run()
    except WorkerFailed:
        raise click.ClickException(
            "The service ended, since its worker died twice within seconds; the log says why."
        ) from None


def _raise_descriptor_limit() -> int:
    """Let the process have as many descriptors as it may, and keep some back for files; connections left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS_MAX + _DESCRIPTORS_KEPT_BACK
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    return max(1, (wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)) - _DESCRIPTORS_KEPT_BACK)


async def _welcome(settings: Settings, store: Store) -> None:
    """Tell where the service listens; on a first start on loopback, with a key that works."""
    here = f"http://{_url_host(settings.host)}:{settings.port}"
    public = f", for clients at {settings.base_url}" if settings.base_url else ""
    _say(f"Pet Store Service at {here}/v1{public}, reference at {here}/docs. Ctrl+C stops it.")
    if not await store.is_empty():
        return
    if not settings.is_loopback:
        _say("No account yet: petstore accounts add NAME --plan free, then petstore keys issue NAME")
        return
    try:
        await store.keys.add_account("local", FREE)
    except Conflict:  # another replica starts at the same moment, and prints the key
        return
    issued = await store.keys.issue("local", settings.environment, label="first start")
    _say("\nFirst start: here is a key on the Free plan for the account 'local'. It is shown only now.\n")
    _say(f"  {issued.secret}\n\nTry it:\n")
    _say(f"  curl -i -H 'Authorization: Bearer {issued.secret}' {here}/v1/pets\n")


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bind(settings: Settings) -> socket.socket:
    """The listener's socket: a port that is taken is found before anything is made."""
    from petstore.serving import listener as listeners

    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        _bind_soon(listener, settings)
    except OSError as error:
        listener.close()
        raise _cannot_listen(settings, error) from error
    listeners.prepare(listener)
    return listener


def _bind_soon(listener: socket.socket, settings: Settings) -> None:
    """Within two seconds: workers whose parent was killed need a moment to leave the port. Raises OSError."""
    for left in reversed(range(_BIND_ATTEMPTS)):
        try:
            listener.bind((settings.host, settings.port))
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not left:
                raise
        threading.Event().wait(_BIND_PAUSE_SECONDS)


def _listen(listener: socket.socket, settings: Settings) -> None:
    from petstore.serving.worker import BACKLOG

    try:
        listener.listen(BACKLOG)
    except OSError as error:  # another program has bound it at the same moment
        raise _cannot_listen(settings, error) from error


def _cannot_listen(settings: Settings, error: OSError) -> Conflict:
    remedy = (
        "PETSTORE_HOST is no address of this machine."
        if error.errno == errno.EADDRNOTAVAIL
        else "Stop what uses it, or set PETSTORE_HOST and PETSTORE_PORT."
    )
    reason = error.strerror or str(error)
    return Conflict(f"Can't listen on {settings.host}:{settings.port}: {reason}. {remedy}")
