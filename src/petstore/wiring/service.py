"""Builds a service of its parts, in tests as in production.

Commands use administration.py, which imports less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from petstore.api.categories import CategoryOperations
from petstore.api.deprecation import Deprecation
from petstore.api.openapi.document import INTERFACE_VERSION, OpenApiDocument
from petstore.api.operations import operations
from petstore.api.orders import OrderOperations
from petstore.api.pets import PetOperations
from petstore.api.pipeline.app import PREFIX, ApiApp
from petstore.api.pipeline.cors import Cors
from petstore.api.pipeline.gate import Gate
from petstore.api.pipeline.routing import Operation
from petstore.api.usage import UsageOperations
from petstore.config import Settings
from petstore.core.clock import Clock, SystemClock
from petstore.core.limits.counters import Limiter
from petstore.core.limits.usage import UsageMeter
from petstore.limiter.address_limiter import AddressLimiter
from petstore.ops.counts import Counts, Levels
from petstore.ops.endpoints import Endpoints
from petstore.ops.flusher import CounterFlusher
from petstore.ops.health import Health
from petstore.ops.history import ServiceHistory
from petstore.ops.incidents import Incidents
from petstore.ops.log_writers import LogWriter
from petstore.ops.metrics import Metrics
from petstore.ops.supervision import read_metrics
from petstore.ops.telemetry import ApiObserver, LimiterWatch, SiteWatch
from petstore.site.app import build_site
from petstore.site.pages import Pages
from petstore.storage.backend import Backend
from petstore.storage.store import Store
from petstore.wiring.administration import backend_of
from petstore.wiring.background import build_metrics, look_until_closed, measure, run_until_closed, start_log
from petstore.wiring.console import build_console, build_history
from petstore.wiring.finishing import Finishing
from petstore.wiring.limits import Ask, Save, open_store, processes


class Service:
    """A running service: its two ASGI applications, and what `stop` closes."""

    def __init__(
        self,
        *,
        store: Store,
        api: ApiApp,
        site: ASGIApp,
        flusher: CounterFlusher,
        endpoints: Endpoints,
        log_writer: LogWriter,
        opened: AsyncExitStack,
    ) -> None:
        self.store = store
        self.api = api
        self.site = site
        self.flusher = flusher
        self.log_writer = log_writer
        self._endpoints = endpoints
        self._opened = opened

    def begin_drain(self) -> None:
        """Say at /readyz that traffic should go elsewhere."""
        self._endpoints.draining = True

    async def stop(self) -> None:
        """Save the counters, carry out what was accepted, then close the store, Valkey and the log."""
        self.begin_drain()
        await self._opened.aclose()


def openapi_document(settings: Settings) -> OpenApiDocument:
    """The contract with the addresses of the settings.

    Without a base address it is the listener's, if that is for this machine alone; else a path, since a
    host such as 0.0.0.0 is no address for a client.
    """
    base, description = settings.base_url, "Production"
    if not base and settings.is_loopback:
        base, description = f"{settings.listens_at}{PREFIX}", "This machine"
    servers = [{"url": base or PREFIX, "description": description}]
    if settings.staging_base_url:
        servers.append({"url": settings.staging_base_url, "description": "Staging"})
    return OpenApiDocument(servers, base and f"{base.removesuffix(PREFIX)}/docs")


def _build_endpoints(
    settings: Settings,
    store: Store,
    flusher: CounterFlusher,
    metrics: Metrics,
    ask_limiter: Ask,
    counts_directory: Path | None,
    opened: AsyncExitStack,
) -> Endpoints:
    health = Health(
        probe=store.probe,
        ask_limiter=ask_limiter,
        trouble=lambda: flusher.trouble,
        in_outage=lambda: metrics.in_outage,
        limiter_outage=settings.limiter_outage if settings.valkey_url else None,
        background=lambda: read_metrics(counts_directory).background,
    )
    metrics.read_from(health.read)
    look_until_closed(health, opened)
    return Endpoints(
        health=health,
        metrics=metrics,
        networks=settings.ops_networks,
        hosts=settings.own_hosts,
        trusted_proxies=settings.trusted_proxies,
    )


def _references(settings: Settings) -> tuple[str, str]:
    """Where references below /v1 and to the documentation begin."""
    base = settings.base_url or PREFIX
    return base, f"{base.removesuffix(PREFIX)}/docs"


def _build_operations(settings: Settings, clock: Clock, store: Store) -> list[Operation]:
    base, documentation = _references(settings)
    body_timeout_seconds = settings.body_timeout_ms / 1_000
    removal_at = int(settings.removal_date.timestamp())
    pets = PetOperations(
        pets=store.pets,
        clock=clock,
        deprecation=Deprecation(removal_at, base, f"{documentation}/deprecation"),
        reference_base=base,
        body_timeout_seconds=body_timeout_seconds,
    )
    orders = OrderOperations(
        orders=store.orders,
        accounts=store.accounts,
        reference_base=base,
        body_timeout_seconds=body_timeout_seconds,
    )
    categories = CategoryOperations(categories=store.categories)
    return operations(pets, categories, orders, UsageOperations(usage=store.usage))


def _build_api(
    settings: Settings,
    clock: Clock,
    store: Store,
    limiter: Limiter,
    meter: UsageMeter,
    observer: ApiObserver,
    metrics: Metrics,
) -> ApiApp:
    gate = Gate(
        keys=store.keys,
        limiter=limiter,
        addresses=AddressLimiter(clock, max(1, settings.address_per_minute // processes(settings))),
        meter=meter,
        clock=clock,
        trusted_proxies=settings.trusted_proxies,
    )
    cors = Cors(settings.cors_origins)
    _, documentation = _references(settings)
    api = ApiApp(
        operations=_build_operations(settings, clock, store),
        gate=gate,
        cors=cors,
        clock=clock,
        observer=observer,
        page_of_errors=f"{documentation}/errors",
    )

    def read(counts: Counts, levels: Levels) -> None:
        counts.page_reads, levels.cached_pages = api.cache.reads, len(api.cache)
        counts.key_reads, levels.cached_keys = gate.key_reads, gate.cached_keys
        levels.in_flight = api.in_flight

    metrics.read_from(read)
    return api


def _build_site(
    settings: Settings, endpoints: Endpoints, console: Sequence[Route], clock: Clock
) -> Starlette:
    pages = Pages(
        openapi_document(settings),
        version=INTERFACE_VERSION,
        base=settings.base_url or "",
        removal_date=f"{settings.removal_date:%-d %B %Y}",
        console=bool(console),
        trusted=settings.trusted_proxies,
        clock=clock,
    )
    return build_site([*pages.routes(), *endpoints.routes(), *console], pages.error)


def _each_round(
    settings: Settings, backend: Backend, metrics: Metrics, incidents: Incidents, history: ServiceHistory
) -> list[Callable[[], None]]:
    """What is done once a second."""
    steps = [metrics.share, incidents.check]
    if backend.file is not None:
        steps.append(backend.file.keep_reserve)
    if settings.has_console:
        steps.append(history.sample)
    return steps


def _build_flusher(
    limiter: Limiter,
    meter: UsageMeter,
    save: Save,
    store: Store,
    steps: list[Callable[[], None]],
    clock: Clock,
) -> CounterFlusher:
    return CounterFlusher(
        limiter=limiter,
        meter=meter,
        save=save,
        purge=store.purge,
        try_write=store.try_write,
        each_round=steps,
        clock=clock,
    )


async def build(
    settings: Settings, clock: Clock | None = None, counts_directory: Path | None = None, worker: int = 0
) -> Service:
    """Open the store, take up the counters where they were left, and join everything.

    `counts_directory`: the workers of one service exchange their metrics there; `worker`: the number of this
    one. A failed start closes everything that it opened. Raises ConfigurationError and StoreUnavailable.
    """
    async with AsyncExitStack() as opened:
        log_writer = start_log(settings, worker)
        opened.callback(log_writer.close)
        metrics = build_metrics(counts_directory)
        return await _join(settings, clock or SystemClock(), log_writer, metrics, counts_directory, opened)


async def _join(
    settings: Settings,
    clock: Clock,
    log_writer: LogWriter,
    metrics: Metrics,
    counts_directory: Path | None,
    opened: AsyncExitStack,
) -> Service:
    backend = backend_of(settings)
    watch = LimiterWatch(metrics, clock)
    store, limiter, save, ask = await open_store(settings, backend, clock, metrics.counts, watch, opened)
    meter = UsageMeter()
    access_log = log_writer if settings.access_log else None
    incidents = Incidents(clock)
    observer = ApiObserver(
        metrics.counts, incidents, access_log, logs_addresses=settings.log_address != "off"
    )
    history = build_history(metrics, clock)
    steps = _each_round(settings, backend, metrics, incidents, history)
    flusher = _build_flusher(limiter, meter, save, store, steps, clock)
    api = _build_api(settings, clock, store, limiter, meter, observer, metrics)
    measure(backend, clock, metrics, store, flusher, log_writer)
    endpoints = _build_endpoints(settings, store, flusher, metrics, ask, counts_directory, opened)
    unwatched = {route.path for route in endpoints.routes()}
    console = build_console(settings, store, backend, history, flusher, counts_directory, clock)
    if console is not None:
        opened.push_async_callback(console.close)
    pages = _build_site(settings, endpoints, console.routes() if console else [], clock)
    site = SiteWatch(pages, metrics.counts, clock, access_log, unwatched=unwatched)
    run_until_closed(flusher, opened)
    return Service(
        store=store,
        api=api,
        site=Finishing(site, api.unread, clock),
        flusher=flusher,
        endpoints=endpoints,
        log_writer=log_writer,
        opened=opened.pop_all(),
    )
