"""`petstore serve`: checks what can be checked before the start, then keeps workers running."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec
import structlog

from petstore import __version__
from petstore.cli.context import Session, with_store
from petstore.cli.groups import EXIT_REFUSED, examples
from petstore.cli.output import echo_err
from petstore.cli.types import WholeNumber
from petstore.core.errors import AccountExists, OperatorError, PetstoreError, StoreUnavailable
from petstore.core.limits.plans import FREE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from petstore.config import Settings
    from petstore.wiring.administration import Backend, Store

_log = structlog.get_logger("petstore.parent")


@click.command(
    epilog=examples(
        "petstore serve",
        "PETSTORE_HOST=0.0.0.0 PETSTORE_PORT=9000 petstore serve",
        "petstore serve --workers 4",
    )
)
@click.option("--workers", type=WholeNumber(1, 256), help="Processes that serve, as PETSTORE_WORKERS.")
@click.pass_obj
def serve(session: Session, workers: int | None) -> None:
    """Run the service until it is told to stop.

    Ctrl+C or SIGTERM stops it: what was accepted is carried out first. SIGHUP reads the settings anew and
    replaces the workers one by one (on a terminal it stops the service, since the terminal was closed).

    Creates the database when there is none, and migrates one as PETSTORE_MIGRATE says. On the first start,
    and only on a loopback address, it issues a key on the Free plan for an account "local", printed once.
    """
    from petstore.cli import parent
    from petstore.server import binding
    from petstore.wiring import administration, build, service

    build.commit()  # for the workers: by the time one is started, the checkout may have moved on
    settings = _with_workers(session.settings, workers)
    output = service.start_log_of_parent(settings)
    with _faults_as_events(), contextlib.closing(binding.bind(settings.host, settings.port)) as listener:
        connections = binding.raise_descriptor_limit(settings.database_pool)
        backend = session.backend
        # Where counters are shared, several services use the database.
        with contextlib.nullcontext() if settings.valkey_url else backend.hold_for_serving():
            for warning in backend.warnings_before_start(session.clock):
                _log.warning("start check", message=warning)
            administration.migrate_at_start(settings, backend, session.clock, _MigrationEvents())
            welcome = partial(_welcome, settings, backend, may_show_key=not output.is_journal)
            with_store(session, welcome, create=True, echo=_remark)
            if remark := administration.schema_remark(backend):
                _log.warning("start check", message=f"Note: {remark}.")
            binding.listen(listener, settings.host, settings.port)
            parent.load_program(settings, backend)
            with parent.counts_directory() as counts:
                serving = parent.Serving(settings, listener, connections, counts, session.settings)
                code = parent.supervise(settings, serving)
    if code:
        message = "Stopped, but some answers were cut off: a client did not read, or a worker did not stop."
        _log.warning("cut short", message=message)
        click.get_current_context().exit(code)
    _log.info("stopped", message="Stopped.")


@contextlib.contextmanager
def _faults_as_events() -> Iterator[None]:
    """What nobody foresaw is a line of the log too."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, OperatorError, PetstoreError, OSError):
        raise
    except Exception as error:
        _log.critical("parent failed", exc_info=error)
        raise click.exceptions.Exit(EXIT_REFUSED) from None


def _remark(text: str) -> None:
    _log.info("preparing", message=text)


class _MigrationEvents:
    """Implements storage's MigrationObserver."""

    def backed_up(self, file: str) -> None:
        _log.info("backup", file=file, message=f"The database of before is kept as {file}.")

    def applied(self, step: str) -> None:
        _log.info("migration", step=step, message=f"applied {step}")


def _with_workers(settings: Settings, workers: int | None) -> Settings:
    """The settings with the option's number of workers, when it was given."""
    from petstore import config

    if workers is not None:
        settings = msgspec.structs.replace(settings, workers=workers)
        config.check(settings)
    return settings


async def _welcome(settings: Settings, backend: Backend, store: Store, *, may_show_key: bool) -> None:
    """Tell where the service listens; on a first start on loopback, with a key that works."""
    await _try_to_write(backend, store)
    await _warn_of_counting_apart(settings, store)
    here = f"http://{_url_host(settings.host)}:{settings.port}"
    public = f", for clients at {settings.base_url}" if settings.base_url else ""
    _log.info(
        "start",
        version=__version__,
        address=here,
        database=settings.database_url.partition(":")[0],
        workers=settings.workers,
        pid=os.getpid(),
        message=f"Pet Store Service at {here}/v1{public}, reference at {here}/docs. Ctrl+C stops it.",
    )
    if not await store.is_empty():
        return
    if not (settings.is_loopback and may_show_key):
        command = "petstore accounts add NAME --plan free, then petstore keys issue NAME"
        _log.info("no account yet", command=command, message=f"No account yet: {command}")
        return
    try:
        await store.keys.add_account("local", FREE)
    except AccountExists:  # another replica starts at the same moment, and prints the key
        return
    issued = await store.keys.issue("local", settings.environment, label="first start")
    _show_key(issued.secret, here)


async def _warn_of_counting_apart(settings: Settings, store: Store) -> None:
    if not settings.valkey_url and await store.has_shared_counters():
        message = (
            "Services that share a Valkey used this database last, and PETSTORE_VALKEY_URL is not set here."
            " Set it if any of them still runs: each account would have its limits twice."
        )
        _log.warning("start check", message=message)


def _show_key(secret: str, here: str) -> None:
    """For a person, in any format of the log; it is no line of the log."""
    echo_err("\nFirst start: here is a key on the Free plan for the account 'local'. It is shown only now.\n")
    echo_err(f"  {secret}\n\nTry it:\n")
    echo_err(f"  curl -i -H 'Authorization: Bearer {secret}' {here}/v1/pets\n")


async def _try_to_write(backend: Backend, store: Store) -> None:
    """Say it when a file can't be written at the moment, as on a full disk: reads can be served all the same.

    Raises StoreUnavailable for a server, without which there is nothing, and ConfigurationError.
    """
    try:
        await store.try_write()
    except StoreUnavailable as error:
        if backend.file is None:
            raise
        message = f"Not ready until something can be written; reads are served meanwhile. {error.message}"
        _log.warning("start check", message=message)


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
