"""How well the service answers, for its callers: the last day by hours, without counts of requests.

Each worker keeps it for all workers of its replica since it began, in memory: 26 sums, 5 kB. It samples once
a minute, since reading the numbers of eight workers takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from petstore.core.clock import Clock
from petstore.core.durations import HOUR_MS
from petstore.core.service import Period, ServiceStatus
from petstore.ops.history import Sums, latency_of, sums_of
from petstore.ops.worker_metrics import ProcessMetrics

HOURS = 24
STEP_SECONDS = 60
# The service is not well from this part of failed answers in the last step on.
FAILING = 0.01


class CallersStatus:
    """`read` has figures up to a minute old. `own` returns this worker's numbers, `total` all workers'.

    `replicas`: PETSTORE_REPLICAS.
    """

    def __init__(
        self,
        own: Callable[[], ProcessMetrics],
        total: Callable[[], ProcessMetrics | None],
        clock: Clock,
        replicas: int,
    ) -> None:
        self._own = own
        self._total = total
        self._clock = clock
        self._replicas = replicas
        self._since_ms = clock.now_ms()
        self._sampled_at: float | None = None
        self._last: Sums | None = None
        self._recent: Sums | None = None
        self._hours: dict[int, Sums] = {}

    def sample(self) -> None:
        """Record what has come, if a minute has passed; call it about once a second."""
        self._since_ms = min(self._since_ms, self._clock.now_ms())  # it may have been ahead
        now = self._clock.monotonic()
        if self._sampled_at is not None and now - self._sampled_at < STEP_SECONDS:
            return
        self._sampled_at = now
        numbers = self._total()
        if numbers is None:
            return
        before, self._last = self._last, sums_of(numbers.counts)
        self._recent = None if before is None else self._last.minus(before)
        if self._recent is not None:
            self._note(self._recent)

    def _note(self, grown: Sums) -> None:
        hour = self._clock.now_ms() // HOUR_MS
        self._hours[hour] = self._hours[hour].plus(grown) if hour in self._hours else grown
        for old in [each for each in self._hours if not hour - HOURS < each <= hour]:
            del self._hours[old]

    def read(self) -> ServiceStatus:
        now = self._clock.now_ms() // HOUR_MS
        first = max(self._since_ms // HOUR_MS, now - HOURS + 1)
        shown = {hour: self._hours.get(hour) for hour in range(now, first - 1, -1)}
        known = [sums for sums in shown.values() if sums is not None]
        return ServiceStatus(
            state=self._state(),
            since_ms=max(self._since_ms, first * HOUR_MS),
            replicas=self._replicas,
            whole=_period(first, reduce(Sums.plus, known) if known else None),
            hours=[_period(hour, sums) for hour, sums in shown.items()],
        )

    def _state(self) -> str:
        if not self._own().gauges.ready:
            return "down"
        requests, errors = (0, 0) if self._recent is None else self._recent.counts[:2]
        return "failing" if errors > FAILING * requests else "well"


def _period(hour: int, sums: Sums | None) -> Period:
    requests, errors = (0, 0) if sums is None else sums.counts[:2]
    if sums is None or not requests:
        return Period(hour * HOUR_MS, None, None)
    # Rounded down: 100 % says that nothing failed.
    percent = (requests - errors) * 10_000 // requests / 100
    return Period(hour * HOUR_MS, percent, latency_of(sums.buckets))
