"""Joins the parts of the service: knows every concrete class. Tests build the service by it too.

What a command needs of the store is administration.py, which is lighter to import.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as PageRequest
from starlette.responses import Response

from petstore.api.deprecation import Deprecation
from petstore.api.openapi.document import INTERFACE_VERSION, OpenApiDocument
from petstore.api.operations import operations
from petstore.api.pets import PetOperations
from petstore.api.pipeline.app import PREFIX, ApiApp
from petstore.api.pipeline.cors import Cors
from petstore.api.pipeline.gate import Gate
from petstore.config import Settings
from petstore.config.surroundings import read_surroundings
from petstore.core.clock import Clock, SystemClock
from petstore.core.errors import (
    InternalError,
    MethodNotAllowed,
    NotFound,
    PetstoreError,
    StoreUnavailable,
    error_body,
)
from petstore.core.limits.counters import Limiter
from petstore.core.limits.usage import UsageMeter
from petstore.limiter.address_limiter import AddressLimiter
from petstore.ops import logs
from petstore.ops.access_log import AccessFormat
from petstore.ops.counts import Counts, Levels
from petstore.ops.disk import database_metrics
from petstore.ops.endpoints import Endpoints
from petstore.ops.flusher import CounterFlusher
from petstore.ops.incidents import Incidents
from petstore.ops.log_writers import LogWriter
from petstore.ops.metrics import Metrics
from petstore.ops.process import Connections, ProcessUse
from petstore.ops.supervision import supervision_metrics
from petstore.ops.telemetry import ApiObserver, LimiterWatch, Site, SiteWatch
from petstore.ops.worker_metrics import WorkerMetricsDirectory
from petstore.site.pages import Pages
from petstore.storage.backend import Store
from petstore.wiring import build as build_info
from petstore.wiring.administration import Backend, backend_of
from petstore.wiring.counting import Counting, open_counting, processes

_log = structlog.get_logger("petstore")


class Service:
    """A running service: its two ASGI applications and what keeps them going."""

    def __init__(
        self,
        *,
        counting: Counting,
        api: ApiApp,
        site: Site,
        flusher: CounterFlusher,
        endpoints: Endpoints,
        log_writer: LogWriter,
    ) -> None:
        self.store = counting.store
        self.api = api
        self.site = site
        self.flusher = flusher
        self._endpoints = endpoints
        self._counting = counting
        self._log_writer = log_writer
        self._saving = asyncio.create_task(flusher.run())

    def begin_drain(self) -> None:
        """Say at /readyz that traffic should go elsewhere."""
        self._endpoints.draining = True

    async def stop(self) -> None:
        """Write what is counted, carry out what was accepted, close everything."""
        self.begin_drain()
        self.flusher.stop()
        await self._saving
        try:
            await self.flusher.save()
        except StoreUnavailable as error:
            _log.error("the last counters could not be saved", reason=error.message)
        await self._counting.close()
        self._log_writer.close()


def start_log_of_parent(settings: Settings) -> logs.Output:
    """Set the log up for a process that only forks workers; where it goes."""
    stream = read_surroundings().journal_stream
    return logs.start_directly(settings.log_level, settings.log_format, journal_stream=stream)


def openapi_document(settings: Settings) -> OpenApiDocument:
    """The contract with the servers of the settings."""
    servers = [{"url": settings.base_url or PREFIX, "description": "Production"}]
    if settings.staging_base_url:
        servers.append({"url": settings.staging_base_url, "description": "Staging"})
    return OpenApiDocument(servers)


def _build_endpoints(
    settings: Settings, store: Store, flusher: CounterFlusher, metrics: Metrics
) -> Endpoints:
    return Endpoints(
        probe=store.probe,
        trouble=lambda: flusher.trouble,
        metrics=metrics,
        networks=settings.ops_networks,
        hosts=settings.own_hosts,
        trusted_proxies=settings.trusted_proxies,
        limiter_outage=settings.limiter_outage if settings.valkey_url else None,
    )


def _references(settings: Settings) -> tuple[str, str]:
    """Where references below /v1 and to the documentation begin."""
    base = settings.base_url or PREFIX
    return base, f"{base.removesuffix(PREFIX)}/docs/deprecation"


def _build_api(
    settings: Settings,
    clock: Clock,
    store: Store,
    limiter: Limiter,
    meter: UsageMeter,
    observer: ApiObserver,
    metrics: Metrics,
) -> ApiApp:
    base, documentation = _references(settings)
    pets = PetOperations(
        pets=store.pets,
        clock=clock,
        deprecation=Deprecation(int(settings.removal_date.timestamp()), base, documentation),
        reference_base=base,
        body_timeout_seconds=settings.body_timeout_ms / 1_000,
    )
    gate = Gate(
        keys=store.keys,
        limiter=limiter,
        addresses=AddressLimiter(clock, max(1, settings.address_per_minute // processes(settings))),
        meter=meter,
        clock=clock,
        trusted_proxies=settings.trusted_proxies,
    )
    cors = Cors(settings.cors_origins)
    api = ApiApp(operations=operations(pets), gate=gate, cors=cors, clock=clock, observer=observer)

    def read(counts: Counts, levels: Levels) -> None:
        counts.page_reads, levels.cached_pages = api.cache.reads, len(api.cache)
        counts.key_reads, levels.cached_keys = gate.key_reads, gate.cached_keys
        levels.in_flight = api.in_flight

    metrics.read_from(read)
    return api


def _build_site(settings: Settings, endpoints: Endpoints) -> Starlette:
    pages = Pages(
        openapi_document(settings),
        version=INTERFACE_VERSION,
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


def _measure(
    backend: Backend,
    clock: Clock,
    metrics: Metrics,
    store: Store,
    flusher: CounterFlusher,
    log_writer: LogWriter,
) -> None:
    """Let metrics show what the parts know of themselves; before anybody is connected."""
    connections = Connections(lambda: store.load().pool_open)

    def read(counts: Counts, levels: Levels) -> None:
        load = store.load()
        levels.writes_waiting = load.writes_waiting
        levels.pool_in_use, levels.pool_waiting = load.pool_in_use, load.pool_waiting
        levels.connections = connections.count()
        levels.counters_saved_at = flusher.saved_ms / 1_000
        counts.lines_dropped = log_writer.dropped

    metrics.read_from(read)
    metrics.read_from(ProcessUse(clock.now_ms()).read)
    if (file := backend.file) is not None:
        metrics.show(database_metrics(file.checked_path().resolve(), file.backup_mark()))


async def build(
    settings: Settings, clock: Clock | None = None, counts_directory: Path | None = None, worker: int = 0
) -> Service:
    """Open the store, take up the counters where they were left, and join everything.

    `counts_directory` is where the workers of one service leave their metrics to each other, `worker` this
    one's number. Raises ConfigurationError and StoreUnavailable.
    """
    access = AccessFormat(
        trusted_proxies=settings.trusted_proxies, addresses=settings.log_address, worker=worker
    )
    stream = read_surroundings().journal_stream
    log_writer = logs.start(
        settings.log_level, settings.log_format, access=access, journal_stream=stream, worker=worker
    )
    try:
        shared = WorkerMetricsDirectory(counts_directory, os.getpid()) if counts_directory else None
        metrics = Metrics(shared, build_info.commit())
        metrics.show(supervision_metrics(counts_directory))
        return await _join(settings, clock or SystemClock(), log_writer, metrics)
    except BaseException:
        log_writer.close()
        raise


async def _join(settings: Settings, clock: Clock, log_writer: LogWriter, metrics: Metrics) -> Service:
    backend = backend_of(settings)
    counting = await open_counting(settings, backend, clock, metrics, LimiterWatch(metrics, clock))
    store, limiter = counting.store, counting.limiter
    meter = UsageMeter()
    access_log = log_writer if settings.access_log else None
    incidents = Incidents(clock)
    observer = ApiObserver(metrics, incidents, access_log, logs_addresses=settings.log_address != "off")
    flusher = CounterFlusher(
        limiter=limiter,
        meter=meter,
        save=counting.save,
        purge=store.purge,
        try_write=store.try_write,
        each_round=[metrics.share, incidents.look, *([backend.file.keep_reserve] if backend.file else [])],
        clock=clock,
    )
    api = _build_api(settings, clock, store, limiter, meter, observer, metrics)
    _measure(backend, clock, metrics, store, flusher, log_writer)
    endpoints = _build_endpoints(settings, store, flusher, metrics)
    return Service(
        counting=counting,
        api=api,
        site=SiteWatch(
            _build_site(settings, endpoints),
            metrics,
            clock,
            access_log,
            unwatched={route.path for route in endpoints.routes()},
        ),
        flusher=flusher,
        endpoints=endpoints,
        log_writer=log_writer,
    )
