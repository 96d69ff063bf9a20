"""Joins the parts: the only module that knows every concrete class. Tests build the service by it too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import IO

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as PageRequest
from starlette.responses import Response

from petstore import __version__
from petstore.api.app import PREFIX, ApiApp, build_router
from petstore.api.cors import Cors
from petstore.api.deprecation import Deprecation
from petstore.api.gate import Gate
from petstore.api.openapi import OpenApiDocument
from petstore.api.pets import PetOperations
from petstore.clock import Clock, SystemClock
from petstore.config import Settings
from petstore.errors import (
    ConfigurationError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    PetstoreError,
    StoreUnavailable,
    error_body,
)
from petstore.limiter.addresses import AddressLimiter
from petstore.limiter.memory import MemoryLimiter
from petstore.ops.endpoints import Endpoints
from petstore.ops.journal import Journal
from petstore.ops.logs import AccessLog, configure
from petstore.ops.metrics import Metrics
from petstore.ops.observer import ApiObserver
from petstore.quota import BanPolicy, LimiterState
from petstore.storage import Store, StoreOptions, open_storage, sqlite_path
from petstore.storage.observer import StoreObserver
from petstore.storage.sqlite import upkeep
from petstore.storage.sqlite.upkeep import CheckReport
from petstore.usage import UsageMeter
from petstore.web.pages import Pages

__all__ = ["CheckReport", "Service", "Store", "build", "open_store", "openapi_document"]

_log = structlog.get_logger("petstore")


class Service:
    """A running service: its two ASGI applications and what keeps them going."""

    def __init__(
        self,
        *,
        store: Store,
        api: ApiApp,
        site: Starlette,
        journal: Journal,
        endpoints: Endpoints,
        access_log: AccessLog | None,
    ) -> None:
        self.store = store
        self.api = api
        self.site = site
        self.journal = journal
        self._endpoints = endpoints
        self._access_log = access_log
        self._saving = asyncio.create_task(journal.run())

    async def stop(self) -> None:
        """Write what is counted, carry out what was accepted, close everything."""
        self._endpoints.draining = True
        self.journal.stop()
        await self._saving
        try:
            await self.journal.save()
        except StoreUnavailable as error:
            _log.error("the last counters could not be saved", reason=error.message)
        await self.store.close()
        if self._access_log is not None:
            self._access_log.close()


def open_store(settings: Settings, clock: Clock, observer: StoreObserver | None = None) -> Store:
    """The store of the settings, created and migrated when needed."""
    options = StoreOptions(settings.write_queue, settings.busy_timeout)
    return open_storage(settings.database_url, clock, options, observer)


def lock_for_serving(settings: Settings) -> IO[str]:
    """Hold the database for one server, since the counters of the limits live in its process.

    Raises Conflict when another server holds it.
    """
    return upkeep.lock_for_serving(str(database_path(settings)))


def database_path(settings: Settings) -> Path:
    """The database's file, which need not exist. Raises ConfigurationError when its directory does not."""
    path = Path(sqlite_path(settings.database_url))
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(
            f"PETSTORE_DATABASE_URL: there is no directory {path.absolute().parent}; make it first."
        )
    return path


def migrate_database(settings: Settings) -> list[str]:
    """Bring the schema up to date, in a new file when there is none; the names of the steps that ran."""
    return upkeep.migrate(str(database_path(settings)), settings.busy_timeout)


def check_database(settings: Settings) -> CheckReport:
    """Read all of the database and say what is wrong. Raises NotFound when there is none."""
    return upkeep.check(str(database_path(settings)), settings.busy_timeout)


def back_up_database(settings: Settings, target: Path) -> CheckReport:
    """Copy the database, in use or not, to a file that does not exist yet. Raises Conflict when it does."""
    return upkeep.backup(str(database_path(settings)), str(target), settings.busy_timeout)


def restore_database(settings: Settings, source: Path) -> CheckReport:
    """Put a backup in the database's place. Raises Conflict while a server runs or when it is damaged."""
    return upkeep.restore(str(database_path(settings)), str(source), settings.busy_timeout)


def ban_policy(settings: Settings) -> BanPolicy:
    """The ban rule of the settings."""
    return BanPolicy(
        settings.ban_minimum_rejections,
        settings.ban_window,
        settings.ban_grace,
        settings.ban_durations,
        settings.ban_forgiven_after,
    )


def openapi_document(settings: Settings) -> OpenApiDocument:
    """The contract with the servers of the settings."""
    servers = [{"url": settings.base_url or PREFIX, "description": "Production"}]
    if settings.staging_base_url:
        servers.append({"url": settings.staging_base_url, "description": "Staging"})
    return OpenApiDocument(servers)


def _references(settings: Settings) -> tuple[str, str]:
    """Where references below /v1 and to the documentation begin."""
    base = settings.base_url or PREFIX
    return base, f"{base.removesuffix(PREFIX)}/docs/deprecation"


def _build_api(
    settings: Settings,
    clock: Clock,
    store: Store,
    limiter: MemoryLimiter,
    meter: UsageMeter,
    observer: ApiObserver,
) -> ApiApp:
    base, documentation = _references(settings)
    pets = PetOperations(
        pets=store.pets,
        clock=clock,
        deprecation=Deprecation(int(settings.removal_date.timestamp()), base, documentation),
        reference_base=base,
        body_timeout_seconds=settings.body_timeout / 1_000,
    )
    gate = Gate(
        keys=store.keys,
        versions=store.versions,
        limiter=limiter,
        addresses=AddressLimiter(clock, settings.address_per_minute),
        meter=meter,
        clock=clock,
        trusted_proxies=settings.trusted_proxies,
    )
    return ApiApp(
        router=build_router(pets), gate=gate, cors=Cors(settings.cors_origins), clock=clock, observer=observer
    )


def _build_site(settings: Settings, endpoints: Endpoints) -> Starlette:
    pages = Pages(
        openapi_document(settings),
        version=__version__,
        base=settings.base_url or f"http://{settings.host}:{settings.port}{PREFIX}",
        removal_date=f"{settings.removal_date:%-d %B %Y}",
    )
    site = Starlette(
        routes=[*pages.routes(), *endpoints.routes()],
        exception_handlers={
            HTTPException: _answer_http_exception,
            PetstoreError: _answer_error,
            Exception: _answer_unexpected,
        },
    )
    site.router.redirect_slashes = False
    return site


def _error_response(error: PetstoreError, headers: dict[str, str] | None = None) -> Response:
    headers = {"x-content-type-options": "nosniff", "cache-control": "no-store", **(headers or {})}
    return Response(error_body(error), error.status, headers, media_type="application/json")


async def _answer_http_exception(request: PageRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == MethodNotAllowed.status:
        allow = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        return _error_response(MethodNotAllowed(f"This path takes {allow}.", allow), {"allow": allow})
    return _error_response(NotFound("There is nothing here; / says where to go, the interface is under /v1."))


async def _answer_error(request: PageRequest, error: Exception) -> Response:
    assert isinstance(error, PetstoreError)
    return _error_response(error)


async def _answer_unexpected(request: PageRequest, error: Exception) -> Response:
    _log.error("unexpected error", exc_info=error)
    return _error_response(InternalError("Something went wrong on our side."))


async def build(settings: Settings, clock: Clock | None = None) -> Service:
    """Open the store, take up the counters where they were left, and join everything.

    Raises ConfigurationError and StoreUnavailable.
    """
    clock = clock or SystemClock()
    as_json = configure(settings.log_level, settings.log_format)
    metrics = Metrics()
    store = open_store(settings, clock, metrics)
    state: LimiterState = await store.ledger.load(clock.now_ms())
    limiter = MemoryLimiter(clock, ban_policy(settings), state)
    meter = UsageMeter()
    access_log = AccessLog(as_json=as_json) if settings.access_log else None
    endpoints = Endpoints(
        probe=store.probe,
        metrics=metrics,
        networks=settings.ops_networks,
        trusted_proxies=settings.trusted_proxies,
    )
    journal = Journal(limiter=limiter, meter=meter, ledger=store.ledger, purge=store.purge, clock=clock)
    return Service(
        store=store,
        api=_build_api(settings, clock, store, limiter, meter, ApiObserver(metrics, access_log)),
        site=_build_site(settings, endpoints),
        journal=journal,
        endpoints=endpoints,
        access_log=access_log,
    )
