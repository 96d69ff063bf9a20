"""The start of a service up to its workers: checks, migration, first key, first link."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import msgspec
import structlog

from petstore import __version__
from petstore.config import Settings
from petstore.config.user import read_actor
from petstore.core.clock import Clock
from petstore.core.errors import AccountExists, ConfigurationError, Conflict, StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.people import Role
from petstore.core.sign_ins import link_address
from petstore.core.stages import Stage, check_served
from petstore.wiring import administration
from petstore.wiring.administration import Backend, Store

# Prints the first key, the address of the service, and the first link to the console where there is one.
ShowFirst = Callable[[str, str, str | None], None]

_log = structlog.get_logger("petstore.parent")

_BACKGROUND_CONNECTIONS = 2  # the background process has one, and another for an import

_OPEN_TO_ALL = (
    "PETSTORE_OPS_NETWORKS has every address: /metrics and the details of /readyz are public. Name the"
    " networks of your monitoring."
)


def prepare(settings: Settings, backend: Backend, clock: Clock, show_first: ShowFirst | None) -> None:
    """Prepare the database, which this service holds. Without `show_first` a first start issues no key.

    Raises OperatorError and StoreUnavailable.
    """
    if any(network.prefixlen == 0 for network in settings.ops_networks):
        _log.warning("start check", message=_OPEN_TO_ALL)
    for warning in backend.warnings_before_start(clock):
        _log.warning("start check", message=warning)
    administration.check_files(settings)
    check_served(backend.schema().stage, settings.stage)
    administration.migrate_at_start(settings, backend, clock, _MigrationEvents())
    if not backend.schema().exists:
        _log_preparation(f"Making the database {backend.name}.")
    asyncio.run(_use(settings, backend, clock, show_first))
    if remark := backend.schema().remark:
        _log.warning("start check", message=f"Note: {remark}.")


def fitted(settings: Settings, backend: Backend, pool_before: int | None = None) -> Settings:
    """The settings with a pool that PostgreSQL has room for. A smaller one is logged, and so is a setup of
    replicas that have no room together. Where it can't be asked, the pool is at most the one before.
    Raises ConfigurationError.
    """
    try:
        room = backend.connection_room()
    except StoreUnavailable as error:  # at a reload: the workers find out for themselves
        _log.warning("start check", message=f"The size of the pools is not checked. {error.message}")
        pool = min(settings.database_pool, pool_before or settings.database_pool)
        return msgspec.structs.replace(settings, database_pool=pool)
    if room is None:
        return settings
    workers, wanted = settings.workers, settings.database_pool
    pool = max(1, min(wanted, room // workers))
    together = settings.replicas * workers * pool + (settings.replicas - 1) * _BACKGROUND_CONNECTIONS
    advice = "Raise max_connections, or lower PETSTORE_DATABASE_POOL."
    if pool < wanted:
        message = (
            f"PostgreSQL has room for {room} connections, one left for commands: each of {workers} workers"
            f" opens {pool}, not {wanted}. {advice}"
        )
        _log.warning("start check", message=message)
    if together > room:
        message = (
            f"All replicas may open {together} connections, and PostgreSQL has room for {room}: requests and"
            f" commands may be refused. {advice}"
        )
        _log.warning("start check", message=message)
    return msgspec.structs.replace(settings, database_pool=pool)


async def _use(settings: Settings, backend: Backend, clock: Clock, show_first: ShowFirst | None) -> None:
    async with administration.store_for_command(settings, backend, clock, _log_preparation) as store:
        await _try_to_write(backend, store)
        if settings.stage:
            await _stamp(settings.stage, store)
        await administration.claim_counters(settings)
        await _warn_of_separate_counters(settings, store)
        here = _log_address(settings)
        log_console_off(settings)
        _advise_base_url(settings)
        if await store.is_empty():
            await _issue_first_key(settings, store, here, show_first)


async def _stamp(stage: Stage, store: Store) -> None:
    """Raises ConfigurationError for data of the other stage."""
    try:
        refused = await store.stages.stamp(stage)
    except StoreUnavailable:  # a full disk: the next start does it
        return
    except Conflict as error:
        raise ConfigurationError(error.message) from None
    if refused:
        message = (
            f"{refused} active {'key is' if refused == 1 else 'keys are'} for {stage.other}, and {stage}"
            f" refuses {'it' if refused == 1 else 'them'}: petstore keys list --foreign shows whose."
        )
        _log.warning("start check", message=message)


def _log_preparation(text: str) -> None:
    _log.info("preparing", message=text)


class _MigrationEvents:
    """Implements storage's MigrationObserver."""

    def backed_up(self, file: str) -> None:
        _log.info("backup", file=file, message=f"The previous database is kept as {file}.")

    def closed(self, line: str) -> None:
        _log.warning("start check", message=line)

    def applied(self, step: str) -> None:
        _log.info("migration", step=step, message=f"applied {step}")


def _log_address(settings: Settings) -> str:
    here = settings.listens_at
    public = f", for clients at {settings.base_url}" if settings.base_url else ""
    _log.info(
        "start",
        version=__version__,
        address=here,
        database=settings.database_url.partition(":")[0],
        workers=settings.workers,
        pid=os.getpid(),
        message=f"Pet Store Service at {here}/v1{public}, documentation at {here}/docs. Ctrl+C stops it.",
    )
    return here


def log_console_off(settings: Settings) -> None:
    """Log why `auto` leaves the console off, and what turns it on."""
    if settings.console != "auto" or settings.has_console:
        return
    reason = (
        "PETSTORE_TRUSTED_PROXIES is set" if settings.trusted_proxies else f"others reach {settings.host}"
    )
    message = f"The console is off, since {reason}. PETSTORE_CONSOLE=on turns it on."
    _log.info("console off", reason=reason, message=message)


def _advise_base_url(settings: Settings) -> None:
    """References in answers never go by what a request says of its address."""
    if settings.trusted_proxies and not settings.base_url:
        message = (
            "PETSTORE_TRUSTED_PROXIES is set, PETSTORE_BASE_URL is not: Link and Location have no host."
            " Set it to the address for clients, such as https://api.example.com/v1."
        )
        _log.info("start check", message=message)


async def _issue_first_key(settings: Settings, store: Store, here: str, show_first: ShowFirst | None) -> None:
    """Issue the first key, on loopback and a terminal only: a log must hold no key, nor a link to the
    console."""
    if show_first is None or not settings.is_loopback:
        command = "petstore accounts add NAME --plan free, then petstore keys issue NAME"
        if settings.has_console:
            command += "; for the console petstore people add NAME --role operator"
        _log.info("no account yet", command=command, message=f"No account yet: {command}")
        return
    actor = read_actor()
    try:
        await store.accounts.add("local", FREE, actor)
    except AccountExists:  # by another replica that starts now, and prints the key
        return
    issued = await store.keys.issue("local", settings.key_environment, actor, label="first start")
    show_first(issued.secret, here, await _first_link(settings, store, actor))


async def _first_link(settings: Settings, store: Store, actor: str) -> str | None:
    """A link for a first person, an operator; None without a console, or when the name is taken."""
    if not settings.has_console:
        return None
    try:
        link = await store.people.add("operator", Role.OPERATOR, actor)
    except Conflict:
        return None
    return link_address(settings.listens_at, link)


async def _warn_of_separate_counters(settings: Settings, store: Store) -> None:
    if not settings.valkey_url and await store.served_with_valkey():
        message = (
            "Services that share a Valkey used this database last, and PETSTORE_VALKEY_URL is not set here."
            " Set it if any of them still runs: each account would have its limits twice."
        )
        _log.warning("start check", message=message)


async def _try_to_write(backend: Backend, store: Store) -> None:
    """Warn when a database file can't be written, as on a full disk: reads are served.

    Raises ConfigurationError, and StoreUnavailable for PostgreSQL.
    """
    try:
        await store.try_write()
    except StoreUnavailable as error:
        if backend.file is None:
            raise
        message = f"Not ready until something can be written; reads are served meanwhile. {error.message}"
        _log.warning("start check", message=message)
