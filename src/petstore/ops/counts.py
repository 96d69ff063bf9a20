"""The numbers behind /metrics: the counts and the state of one process, and the sums over all workers.

`Counts` only grow and are summed over all workers, also those that have ended. `Gauges` are current and are
combined over the living workers.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from petstore.core.limits import plans

LATENCY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROUND_TRIP_BOUNDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
COMMIT_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
WINDOWS = (*(window.name for window in plans.WINDOWS), "ban", "address")
CAUSES = ("missing", "malformed", "foreign", "unknown", "expired", "revoked")
OUTCOMES = ("delivered", "failed")
MAIL_OUTCOMES = ("sent", "failed", "given_up")
# Every documented response, so that its series starts at 0 and the first increase is visible. Others appear
# when they happen.
_ANY = (400, 401, 403, 414, 429, 431, 500, 503)
_WITH_A_BODY = (*_ANY, 408, 413, 415)
STATUSES = {
    "listPets": (200, 304, *_ANY),
    "createPet": (201, 409, 422, *_WITH_A_BODY),
    "getPet": (200, 304, 404, 410, *_ANY),
    "updatePet": (200, 404, 409, 412, *_WITH_A_BODY),
    "deletePet": (204, 404, 409, 412, *_ANY),
    "listOrders": (200, 304, *_ANY),
    "placeOrder": (201, 409, 422, *_WITH_A_BODY),
    "updateOrder": (200, 404, 409, 412, *_WITH_A_BODY),
    "cancelOrder": (204, 404, 409, 412, *_ANY),
    "listCategories": (200, 304, *_ANY),
    "listEvents": (200, 304, 410, *_ANY),
    "listWebhooks": (200, 304, *_ANY),
    "createWebhook": (201, 409, 422, *_WITH_A_BODY),
    "getWebhook": (200, 304, 404, *_ANY),
    "updateWebhook": (200, 404, 410, 412, *_WITH_A_BODY),
    "deleteWebhook": (204, 404, 412, *_ANY),
    "rotateWebhookSecret": (200, 404, 409, *_ANY),
    "testWebhook": (200, 202, 404, 409, *_ANY),
    "listDeliveries": (200, 304, 404, *_ANY),
    "redeliver": (202, 404, 409, *_ANY),
    "rehearseEvent": (200, 404, 409, *_WITH_A_BODY),
    "getUsage": (200, 304, *_ANY),
    "none": (204, 404, 405, *_ANY),
    "site": (200, 400, 404, 405, 500, 503),
}


class Histogram(msgspec.Struct):
    """Observations in seconds by bucket; one writer at a time. Add only those of equal bounds."""

    counts: list[int]
    total: float = 0.0

    @classmethod
    def of(cls, bounds: Sequence[float]) -> Histogram:
        """An empty one: a bucket for each bound, and one above all of them."""
        return cls([0] * (len(bounds) + 1))

    def observe(self, seconds: float, bounds: Sequence[float]) -> None:
        self.counts[bisect_left(bounds, seconds)] += 1
        self.total += seconds

    def __add__(self, other: Histogram) -> Histogram:
        if not any(other.counts):  # as most are
            return self
        counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        return Histogram(counts, self.total + _exact(other.total))

    def buckets(self, bounds: Sequence[float]) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as in Prometheus' text format."""
        cumulative, seen = [], 0
        for bound, count in zip((*map(str, bounds), "+Inf"), self.counts, strict=True):
            seen += count
            cumulative.append((bound, float(seen)))
        return cumulative


def _exact(seconds: float) -> float:
    """The number rounded down to a multiple of 2**-20, so that sums are exact in any order of the workers.

    A sum that falls by rounding would look like a restart to Prometheus.
    """
    return math.floor(seconds * 1_048_576) / 1_048_576


def _answers() -> dict[tuple[str, int], Histogram]:
    return {
        (operation, status): Histogram.of(LATENCY_BOUNDS)
        for operation, statuses in STATUSES.items()
        for status in statuses
    }


class MetricSpec(NamedTuple):
    """How Prometheus shows a field of Counts or Gauges; see docs/monitoring.md."""

    name: str
    help: str
    label: str = ""  # for a dictionary's keys
    bounds: Sequence[float] = ()  # a histogram's
    combine: Callable[[float, float], float] = operator.add  # the gauges of two workers


def _zeros(names: Sequence[str]) -> Any:
    return msgspec.field(default_factory=lambda: dict.fromkeys(names, 0))


def _empty(bounds: Sequence[float]) -> Any:
    return msgspec.field(default_factory=lambda: Histogram.of(bounds))


class Counts(msgspec.Struct):
    """Everything that only grows."""

    answers: dict[tuple[str, int], Histogram] = msgspec.field(default_factory=_answers)
    refusals: dict[str, int] = _zeros(WINDOWS)
    unauthorized: dict[str, int] = _zeros(CAUSES)
    bans: int = 0
    page_reads: int = 0
    key_reads: int = 0
    writes: int = 0
    deliveries: dict[str, int] = _zeros(OUTCOMES)
    mails: dict[str, int] = _zeros(MAIL_OUTCOMES)
    lines_dropped: int = 0
    outages: int = 0
    local_decisions: int = 0
    cpu_seconds: float = 0.0
    commits: Histogram = _empty(COMMIT_BOUNDS)
    round_trips: Histogram = _empty(ROUND_TRIP_BOUNDS)

    def latencies(self, operation: str, status: int) -> Histogram:
        """The histogram of these responses, with LATENCY_BOUNDS; always the same object."""
        return self.answers.setdefault((operation, status), Histogram.of(LATENCY_BOUNDS))

    def refused(self, window: str, *, ban_began: bool) -> None:
        """One 429, by the exhausted window, or `ban`."""
        self.refusals[window] += 1
        self.bans += ban_began

    def committed(self, jobs: int, seconds: float) -> None:
        """One commit of `jobs` writes. SQLite's writer calls it from its thread."""
        self.commits.observe(seconds, COMMIT_BOUNDS)
        self.writes += jobs

    def decided_locally(self) -> None:
        """One request during an outage of the shared counters."""
        self.local_decisions += 1

    def limiter_asked(self, seconds: float) -> None:
        """One round trip to the shared counters."""
        self.round_trips.observe(seconds, ROUND_TRIP_BOUNDS)

    def add(self, other: Counts) -> None:
        """Add another worker's counts: each field is a number, a histogram, or a dictionary of those."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                for key, value in theirs.items():
                    mine[key] = mine[key] + value if key in mine else value
            else:
                setattr(self, name, mine + (_exact(theirs) if isinstance(theirs, float) else theirs))


class Gauges(msgspec.Struct):
    """The state of one process; times in seconds since 1970.

    Some are not summed: one worker without descriptors is enough to fail, one that does not save is a fault,
    and a new start shows that a worker was started.
    """

    ready: int = 1
    store_up: int = 1
    limiter_up: int = 1
    in_outage: int = 0
    in_flight: int = 0
    events_waiting: int = 0
    events_held_seconds: float = 0.0
    connections: int = 0
    writes_waiting: int = 0
    pool_in_use: int = 0
    pool_waiting: int = 0
    cached_pages: int = 0
    cached_keys: int = 0
    counters_saved_at: float = 0.0
    resident_bytes: int = 0
    virtual_bytes: int = 0
    open_descriptors: int = 0
    max_descriptors: int = 0
    started_at: float = 0.0


# In the order in which they are shown. `answers` has families of its own: ops/metrics.py.
COUNT_SPECS = {
    "refusals": MetricSpec("petstore_refusals", "429 answers by window.", "window"),
    "unauthorized": MetricSpec("petstore_unauthorized", "401 answers by cause.", "cause"),
    "bans": MetricSpec("petstore_bans", "Bans that began."),
    "page_reads": MetricSpec("petstore_page_reads", "Pages that were not kept and read from the database."),
    "key_reads": MetricSpec("petstore_key_reads", "Keys that were not kept and looked up in the database."),
    "writes": MetricSpec("petstore_store_writes", "Writes in group commits."),
    "deliveries": MetricSpec(
        "petstore_webhook_deliveries", "Tries to deliver an event to a webhook.", "outcome"
    ),
    "mails": MetricSpec("petstore_mails", "Tries to send a mail, and mails given up.", "outcome"),
    "lines_dropped": MetricSpec("petstore_log_lines_dropped", "Log lines that were not written."),
    "outages": MetricSpec("petstore_limiter_outages", "Times that a process lost the shared counters."),
    "local_decisions": MetricSpec(
        "petstore_limiter_local_decisions", "Requests decided without the shared counters."
    ),
    "cpu_seconds": MetricSpec("process_cpu_seconds", "Processor time of the workers."),
    "commits": MetricSpec(
        "petstore_store_commit_seconds", "Time of a group commit, with its fsync.", bounds=COMMIT_BOUNDS
    ),
    "round_trips": MetricSpec(
        "petstore_limiter_round_trip_seconds",
        "Time of one call to the shared counters.",
        bounds=ROUND_TRIP_BOUNDS,
    ),
}
GAUGE_SPECS = {
    "ready": MetricSpec("petstore_ready", "1 while every worker can serve requests.", combine=min),
    "store_up": MetricSpec("petstore_store_up", "1 while the database answers every worker.", combine=min),
    "limiter_up": MetricSpec(
        "petstore_limiter_up", "1 while every worker reaches the shared counters, or has none.", combine=min
    ),
    "in_outage": MetricSpec("petstore_limiter_outage", "Processes that can't reach the shared counters."),
    "in_flight": MetricSpec("petstore_requests_in_flight", "Requests under /v1 that are being answered."),
    "events_waiting": MetricSpec("petstore_events_waiting", "Requests that wait for an event."),
    "events_held_seconds": MetricSpec(
        "petstore_events_held_seconds", "How long a transaction has held back the oldest event.", combine=max
    ),
    "connections": MetricSpec("petstore_connections", "Connections of clients."),
    "writes_waiting": MetricSpec("petstore_store_writes_waiting", "Writes in SQLite's queue."),
    "pool_in_use": MetricSpec("petstore_pool_connections_in_use", "Connections to PostgreSQL in use."),
    "pool_waiting": MetricSpec("petstore_pool_waiting", "Requests that wait for such a connection."),
    "cached_pages": MetricSpec("petstore_kept_pages", "Pages that are kept."),
    "cached_keys": MetricSpec("petstore_kept_keys", "Keys that are kept."),
    "counters_saved_at": MetricSpec(
        "petstore_counters_saved_timestamp_seconds", "When limits and usage were last saved.", combine=min
    ),
    "resident_bytes": MetricSpec("process_resident_memory_bytes", "Resident memory of the workers."),
    "virtual_bytes": MetricSpec("process_virtual_memory_bytes", "Virtual memory of the workers."),
    "open_descriptors": MetricSpec(
        "process_open_fds", "Open descriptors of the worker that has most.", combine=max
    ),
    "max_descriptors": MetricSpec("process_max_fds", "Descriptors that a worker may have open.", combine=min),
    "started_at": MetricSpec("process_start_time_seconds", "When the newest worker began.", combine=max),
}


def combine(gauges: Sequence[Gauges]) -> Gauges:
    """The gauges of all workers; there is at least one."""
    combined = msgspec.structs.replace(gauges[0])
    for other in gauges[1:]:
        for field, spec in GAUGE_SPECS.items():
            setattr(combined, field, spec.combine(getattr(combined, field), getattr(other, field)))
    return combined
