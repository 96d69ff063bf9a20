"""Builds a service of its parts, in tests as in production.

Commands use administration.py, which imports less.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from petstore.api.openapi.document import INTERFACE_VERSION
from petstore.api.operations import operations
from petstore.api.pipeline.app import ApiApp, ConstantHeaders
from petstore.api.pipeline.cors import Cors
from petstore.api.pipeline.gate import Gate
from petstore.api.pipeline.response import date_header
from petstore.api.waits import Waits
from petstore.config import Settings
from petstore.core.clock import Clock, SystemClock
from petstore.core.limits.usage import UsageMeter
from petstore.core.stages import foreign_to
from petstore.http.asgi import AsgiBridge
from petstore.limiter.address_limiter import AddressLimiter
from petstore.ops.access_log import Addresses
from petstore.ops.counts import Counts, Gauges
from petstore.ops.endpoints import Endpoints
from petstore.ops.flusher import CounterFlusher
from petstore.ops.health import Health
from petstore.ops.held_events import HeldEvents
from petstore.ops.history import ServiceHistory
from petstore.ops.incidents import Incidents
from petstore.ops.log_writers import LogWriter
from petstore.ops.metrics import Metrics
from petstore.ops.refusals import RefusalNotes
from petstore.ops.status import CallersStatus
from petstore.ops.supervision import read_metrics
from petstore.ops.telemetry import ApiObserver, LimiterWatch, SiteWatch
from petstore.ops.webhooks import MailWatch, WebhookWatch
from petstore.site.app import build_site
from petstore.site.pages import Pages
from petstore.storage.backend import Backend
from petstore.storage.store import Store
from petstore.wiring.administration import backend_of
from petstore.wiring.console import build_console
from petstore.wiring.limits import StoreAndLimiter, open_store_and_limiter, processes
from petstore.wiring.operations import build_handlers, documentation_base, openapi_document, stage_headers
from petstore.wiring.ops import build_metrics, check_until_closed, measure, run_until_closed, start_log
from petstore.wiring.rehearsal import build_rehearsal, send_of


class Service(msgspec.Struct, kw_only=True):
    """A running service: what answers under /v1 and elsewhere, and what `stop` closes."""

    store: Store
    api: ApiApp
    waits: Waits
    site: AsgiBridge
    flusher: CounterFlusher
    endpoints: Endpoints
    metrics: Metrics
    log_writer: LogWriter
    opened: AsyncExitStack

    def count_connections(self, connections: Sized) -> None:
        """Show in the metrics how many connections of clients are open."""

        def set_gauges(_: Counts, gauges: Gauges) -> None:
            gauges.connections = len(connections)

        self.metrics.add_source(set_gauges)

    def begin_drain(self) -> None:
        """Say at /readyz that traffic should go elsewhere, and answer the requests that wait for events."""
        self.endpoints.draining = True
        self.waits.end()

    async def stop(self) -> None:
        """Save the counters, carry out what was accepted, then close the store, Valkey and the log."""
        self.begin_drain()
        await self.opened.aclose()


async def build(
    settings: Settings,
    clock: Clock | None = None,
    metrics_directory: Path | None = None,
    worker: int = 0,
    await_predecessor: Callable[[], None] = lambda: None,
) -> Service:
    """Open the store, take up the counters where they were left, and join everything.

    `metrics_directory`: the workers of one service exchange their metrics there; `worker`: the number of this
    one; `await_predecessor` blocks until the one that it replaces has ended. A failed start closes all that
    it opened. Raises ConfigurationError and StoreUnavailable.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as opened:
        log_writer = start_log(settings, worker)
        opened.callback(log_writer.close)
        metrics = build_metrics(settings, metrics_directory)
        process = _Process(settings, clock, log_writer, metrics, metrics_directory, opened)
        backend, watch = backend_of(settings), LimiterWatch(metrics, clock)
        both = await open_store_and_limiter(
            settings, backend, clock, metrics.counts.committed, watch, opened, await_predecessor
        )
        counting = _build_counting(process, backend, both)
        service = _build_service(process, backend, both, counting)
        await both.load_counters()  # last: when the process before has ended, connections wait for this one
        service.opened = opened.pop_all()
        return service


class _Process(NamedTuple):
    """What every builder needs; it adds to `opened` what the stop has to close."""

    settings: Settings
    clock: Clock
    log_writer: LogWriter
    metrics: Metrics
    metrics_directory: Path | None
    opened: AsyncExitStack

    @property
    def access_log(self) -> LogWriter | None:
        return self.log_writer if self.settings.access_log else None


class _Counting(NamedTuple):
    """What counts requests, and the loop that saves and shares it about once a second."""

    meter: UsageMeter
    refusals: RefusalNotes
    incidents: Incidents
    history: ServiceHistory
    status: CallersStatus
    flusher: CounterFlusher


def _build_counting(process: _Process, backend: Backend, both: StoreAndLimiter) -> _Counting:
    """Build what counts requests; its loop does not run yet."""
    meter, incidents = UsageMeter(), Incidents(process.clock)
    addresses = Addresses(process.settings.trusted_proxies, process.settings.log_address)
    refusals = RefusalNotes(addresses)
    history = ServiceHistory(process.metrics.total, process.clock.monotonic)
    status = CallersStatus(
        process.metrics.own, process.metrics.total, process.clock, process.settings.replicas
    )
    each_round: list[Callable[[], object]] = [process.metrics.share, incidents.check, status.sample]
    if backend.file is not None:
        each_round.append(backend.file.keep_reserve)
    if process.settings.has_console:
        each_round.append(history.sample)
    flusher = CounterFlusher(
        limiter=both.limiter,
        meter=meter,
        save=both.save,
        purge=both.store.purge,
        try_write=both.store.try_write,
        each_round=each_round,
        clock=process.clock,
    )

    async def save_refusals() -> None:
        if refused := refusals.drain():
            await both.store.refusals.add(refused)

    flusher.also_save(save_refusals)
    return _Counting(meter, refusals, incidents, history, status, flusher)


def _build_service(
    process: _Process, backend: Backend, both: StoreAndLimiter, counting: _Counting
) -> Service:
    """Both applications; begins the tasks beside them."""
    settings, clock, log_writer, metrics, metrics_directory, opened = process
    store, flusher = both.store, counting.flusher
    waits, of_stage = Waits(store.events), stage_headers(settings)
    opened.push_async_callback(waits.close)
    store.on_commit(waits.committed.set)
    api = _build_api(process, both, counting, waits)
    measure(backend, clock, metrics, store, flusher, log_writer)
    endpoints = _build_endpoints(process, both, flusher)
    unwatched = {route.path for route in endpoints.routes()}
    console = build_console(settings, store, backend, counting.history, flusher, metrics_directory, clock)
    if console is not None:
        opened.push_async_callback(console.close)
    pages = _build_pages(settings, clock, with_console=console is not None)
    routes = [
        *pages.routes(),
        pages.switches(store.contacts),
        pages.status(counting.status.read),
        *endpoints.routes(),
    ]
    if console is None:
        site = build_site(routes, pages.error)
    else:
        site = build_site([*routes, *console.routes()], console.error_page(pages.error))
    watched = SiteWatch(site, metrics.counts, clock, process.access_log, unwatched=unwatched)
    run_until_closed(flusher, opened)
    return Service(
        store=store,
        api=api,
        waits=waits,
        site=AsgiBridge(watched, lambda: [date_header(clock.now_ms() // 1_000), *of_stage]),
        flusher=flusher,
        endpoints=endpoints,
        metrics=metrics,
        log_writer=log_writer,
        opened=opened,
    )


def _build_pages(settings: Settings, clock: Clock, *, with_console: bool) -> Pages:
    return Pages(
        openapi_document(settings),
        version=INTERFACE_VERSION,
        base=settings.base_url or "",
        values={
            "removal_date": f"{settings.removal_date:%-d %B %Y}",
            "console": with_console,
            "is_staging": settings.is_staging,
        },
        trusted=settings.trusted_proxies,
        clock=clock,
    )


def _build_api(process: _Process, both: StoreAndLimiter, counting: _Counting, waits: Waits) -> ApiApp:
    settings, clock, metrics = process.settings, process.clock, process.metrics
    gate = Gate(
        keys=both.store.keys,
        limiter=both.limiter,
        addresses=AddressLimiter(clock, max(1, settings.address_per_minute // processes(settings))),
        meter=counting.meter,
        clock=clock,
        trusted_proxies=settings.trusted_proxies,
        foreign=foreign_to(settings.stage, settings.other_base_url) if settings.stage else None,
    )
    observer = ApiObserver(
        metrics.counts,
        counting.incidents,
        counting.refusals,
        process.access_log,
        logs_addresses=settings.log_address != "off",
    )
    parts = settings, clock, both.store, gate, waits
    handlers = build_handlers(*parts, send_of(settings, clock))
    api = ApiApp(
        operations=operations(handlers),
        gate=gate,
        cors=Cors(settings.cors_origins),
        clock=clock,
        observer=observer,
        rehearse=build_rehearsal(*parts, handlers),
        constant=ConstantHeaders(f"{documentation_base(settings)}/errors", stage_headers(settings)),
    )

    def update_metrics(counts: Counts, gauges: Gauges) -> None:
        counts.page_reads, gauges.cached_pages = api.cache.reads, len(api.cache)
        counts.key_reads, gauges.cached_keys = gate.key_reads, gate.cached_keys
        gauges.events_waiting = len(waits)
        gauges.in_flight = api.in_flight - gauges.events_waiting

    metrics.add_source(update_metrics)
    return api


def _build_endpoints(process: _Process, both: StoreAndLimiter, flusher: CounterFlusher) -> Endpoints:
    settings, metrics, store = process.settings, process.metrics, both.store
    held, webhooks = HeldEvents(store.held_events), WebhookWatch(store.deliverers.states)
    mails = MailWatch(store.notifications.waiting)
    metrics.add_source(held.set_gauges)
    metrics.add_collector(webhooks.collect)
    metrics.add_collector(mails.collect)
    health = Health(
        probe=store.probe,
        check_limiter=both.check_limiter,
        refreshes=[held.refresh, webhooks.refresh, *([mails.refresh] if settings.smtp_url else [])],
        trouble=lambda: flusher.trouble,
        in_outage=lambda: metrics.in_outage,
        limiter_outage=settings.limiter_outage if settings.valkey_url else None,
        background=lambda: read_metrics(process.metrics_directory).background,
    )
    metrics.add_source(health.set_gauges)
    check_until_closed(health, process.opened)
    return Endpoints(
        health=health,
        metrics=metrics,
        networks=settings.ops_networks,
        hosts=settings.own_hosts,
        trusted_proxies=settings.trusted_proxies,
    )
