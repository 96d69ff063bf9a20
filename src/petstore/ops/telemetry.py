"""Turns each response into a count and a line of the access log, and outages into log events."""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import msgspec
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from petstore.core.clock import Clock
from petstore.core.keys import Caller
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.limits.plans import WINDOWS
from petstore.core.stages import REHEARSED
from petstore.ops.access_log import FORWARDED_MAX_BYTES, METHODS, OTHER_METHOD, AccessEntry
from petstore.ops.counts import LATENCY_BOUNDS, Counts, Histogram
from petstore.ops.incidents import Incidents
from petstore.ops.log_writers import LogWriter
from petstore.ops.metrics import Metrics
from petstore.ops.refusals import RefusalNotes

_log = structlog.get_logger("petstore.api")


class Exchange(Protocol):
    client: tuple[str, int]


class Request(Protocol):
    """The fields of api.pipeline's Request that are read here."""

    @property
    def exchange(self) -> Exchange: ...

    method: str
    headers: dict[bytes, bytes]
    request_id: bytes
    waited: float
    caller: Caller | None
    cause: str | None


class Operation(Protocol):
    """What telemetry uses of an operation; `path` is a template, None for unknown paths."""

    @property
    def path(self) -> str | None: ...

    @property
    def name(self) -> str: ...


class Response(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes | None: ...


class ApiObserver(msgspec.Struct):
    """Implements api.pipeline.app.Observer. `logs_addresses`: the access log shows clients' addresses."""

    counts: Counts
    incidents: Incidents
    refusals: RefusalNotes
    access_log: LogWriter | None
    logs_addresses: bool
    _latencies: dict[tuple[str, int], Histogram] = {}

    def answered(
        self,
        request: Request,
        operation: Operation,
        response: Response,
        seconds: float,
        decision: Decision | AddressDecision,
    ) -> None:
        name, status, caller = operation.name, response.status, request.caller
        if request.cause != REHEARSED:  # an error that was asked for must wake nobody
            latencies = self._latencies.get((name, status)) or self._latencies_of(name, status)
            worked = seconds - request.waited
            latencies.counts[bisect_left(LATENCY_BOUNDS, worked)] += 1  # Histogram.observe without the call
            latencies.total += worked
            if status in {401, 403, 429}:
                self._count_refusal(request, operation.path, status, decision)
        if self.incidents.bans and caller is not None and isinstance(decision, Decision):
            self.incidents.answered(caller, decision)
        if self.access_log is not None:
            client, forwarded_for = None, b""
            body = b"" if request.method == "HEAD" else response.body or b""
            if self.logs_addresses:
                client = request.exchange.client
                forwarded_for = request.headers.get(b"x-forwarded-for", b"")[-FORWARDED_MAX_BYTES:]
            self.access_log.record(
                AccessEntry(
                    decision.now_ms,
                    seconds,
                    METHODS.get(request.method, OTHER_METHOD),
                    operation.path,
                    name,
                    status,
                    len(body),
                    client,
                    forwarded_for,
                    caller,
                    request.cause,
                    request.request_id,
                )
            )

    def _latencies_of(self, operation: str, status: int) -> Histogram:
        latencies = self._latencies[operation, status] = self.counts.latencies(operation, status)
        return latencies

    def _count_refusal(
        self, request: Request, path: str | None, status: int, decision: Decision | AddressDecision
    ) -> None:
        caller = request.caller
        if status == 401:
            if request.cause is not None:
                self.counts.unauthorized[request.cause] += 1
            return
        if status == 429:
            if isinstance(decision, AddressDecision):
                self.counts.refused(decision.binding.name, ban_began=False)
                return
            window = "ban" if decision.banned else WINDOWS[decision.binding_index].name
            self.counts.refused(window, ban_began=decision.ban_began)
            if decision.ban_began and caller is not None:
                self.incidents.ban_began(caller, decision)
        if caller is not None:
            forwarded_for = request.headers.get(b"x-forwarded-for")
            if forwarded_for is not None:
                forwarded_for = forwarded_for[-FORWARDED_MAX_BYTES:]
            last = self.refusals.of.get(caller.account_id) or self.refusals.begin(caller.account_id)
            last.append((decision, request.method, path, caller, request.exchange.client, forwarded_for))

    def failed(self, request: Request, operation: str, error: Exception, *, expected: bool) -> None:
        request_id = request.request_id.decode("ascii")
        if expected:
            self.incidents.store_failed(str(error), request_id, operation)
        else:
            _log.error("unexpected error", request_id=request_id, operation=operation, exc_info=error)


class SiteWatch(msgspec.Struct):
    """The site, with a count and a line for each response, except for the paths in `unwatched`."""

    site: ASGIApp
    counts: Counts
    clock: Clock
    access_log: LogWriter | None
    unwatched: set[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = self.clock.monotonic()
        status, size = 500, 0

        async def watched_send(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                size = int(dict(message["headers"]).get(b"content-length", b"0"))
            await send(message)

        try:
            await self.site(scope, receive, watched_send)
        finally:
            seconds = self.clock.monotonic() - began
            has_body = scope["method"] != "HEAD" and status != 304
            self._answered(scope, status, size if has_body else 0, seconds)

    def _answered(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        route = scope.get("route")  # set by Starlette
        path = None if route is None else route.path_format
        if path in self.unwatched:
            return
        operation = "none" if path is None else "site"
        self.counts.latencies(operation, status).observe(seconds, LATENCY_BOUNDS)
        if self.access_log is not None:
            forwarded_for = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
            self.access_log.record(
                AccessEntry(
                    at_ms=self.clock.now_ms(),
                    seconds=seconds,
                    method=METHODS.get(scope["method"], OTHER_METHOD),
                    path=path,
                    operation=operation,
                    status=status,
                    sent_bytes=size,
                    client=scope.get("client"),
                    forwarded_for=forwarded_for[-FORWARDED_MAX_BYTES:],
                )
            )


class LimiterWatch:
    """Implements limiter.valkey.observer.LimiterObserver, with metrics and log events."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._began = 0.0
        self.decided_locally = metrics.counts.decided_locally
        self.asked = metrics.counts.limiter_asked

    def outage_began(self, reason: str) -> None:
        self._began = self._clock.monotonic()
        self._metrics.limiter_outage(True)
        _log.error("shared counters out of reach", reason=reason)

    def outage_ended(self) -> None:
        self._metrics.limiter_outage(False)
        _log.warning("shared counters back", seconds=round(self._clock.monotonic() - self._began, 3))

    def another_data_set(self, *, known: bool) -> None:
        if known:
            _log.warning("Valkey has another data set")
        else:
            _log.warning("Valkey refuses INFO")

    def keeps_snapshots_only(self) -> None:
        _log.warning("Valkey keeps snapshots and no log")

    def clocks_differ(self, seconds: float) -> None:
        _log.warning("the clocks of Valkey and of this machine differ", valkey_is_ahead_seconds=seconds)
