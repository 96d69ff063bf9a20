"""Turns every answer into a count and, when switched on, a line of the access log; and outages into lines."""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import structlog

from petstore.clock import Clock
from petstore.decisions import AnyDecision
from petstore.keys import Grant
from petstore.ops.access_log import AccessEntry
from petstore.ops.counts import LATENCY_BOUNDS, Histogram
from petstore.ops.logs import LogWriter
from petstore.ops.metrics import Metrics

_log = structlog.get_logger("petstore.api")


class Answered(Protocol):
    """What is read of a request; the rest of it is none of this package's business."""

    request_id: bytes
    grant: Grant | None


class ApiObserver:
    """Implements api.app.Observer."""

    def __init__(self, metrics: Metrics, access_log: LogWriter | None) -> None:
        self._metrics = metrics
        self._latencies: dict[tuple[str, int], Histogram] = {}
        self._access_log = access_log

    def answered(
        self, request: Answered, operation: str, status: int, seconds: float, decision: AnyDecision
    ) -> None:
        latencies = self._latencies.get((operation, status))
        if latencies is None:
            latencies = self._latencies[operation, status] = self._metrics.latencies(operation, status)
        # Histogram.observe without the call, since every answer comes here.
        latencies.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        latencies.total += seconds
        if status == 429:
            window = "ban" if decision.banned else decision.binding.name
            self._metrics.refused(window, ban_began=decision.ban_began)
        if self._access_log is not None:
            grant = request.grant
            self._access_log.record(
                AccessEntry(
                    decision.now_ms,
                    request.request_id.decode("ascii"),
                    None if grant is None else grant.account_id,
                    None if grant is None else grant.key_id,
                    operation,
                    status,
                    round(seconds * 1_000, 3),
                )
            )

    def failed(self, request: Answered, operation: str, error: Exception, *, expected: bool) -> None:
        request_id = request.request_id.decode("ascii")
        if expected:
            _log.warning("store unavailable", request_id=request_id, operation=operation, reason=str(error))
        else:
            _log.error("unexpected error", request_id=request_id, operation=operation, exc_info=error)


class LimiterWatch:
    """Implements limiter.observer.LimiterObserver: a line when an outage begins, and one when it ends."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._began = 0.0
        self.decided_locally = metrics.decided_locally
        self.asked = metrics.limiter_asked

    def outage_began(self, reason: str) -> None:
        self._began = self._clock.monotonic()
        self._metrics.limiter_outage(True)
        _log.error("shared counters out of reach", reason=reason)

    def outage_ended(self) -> None:
        self._metrics.limiter_outage(False)
        _log.warning("shared counters back", seconds=round(self._clock.monotonic() - self._began, 3))

    def clocks_differ(self, seconds: float) -> None:
        _log.warning("the clocks of Valkey and of this machine differ", valkey_is_ahead_seconds=seconds)
