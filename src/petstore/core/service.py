"""What a service says of itself, for pages: its load, its database, its workers, and what is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec


class Trouble(msgspec.Struct, frozen=True):
    """Something that a person should repair: what is wrong, and what to do. Whole sentences."""

    what: str
    to_do: str


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds within which half, 95 % and 99 % of the answers came; estimated from a histogram."""

    p50: float
    p95: float
    p99: float


class Recent(msgspec.Struct, frozen=True):
    """Averages a second over the last `seconds`. Without answers there is no latency."""

    seconds: int
    requests: float
    errors: float  # 5xx
    refusals: float  # 429
    commits: float
    latency: Latency | None


class DatabaseState(msgspec.Struct, frozen=True):
    """A database, as read within the last minute. `name` has neither user nor password.

    `log_bytes`, `free_bytes` and `backed_up_at_ms` are known of a file; 0: never backed up. `remark` says how
    the schema differs from the program's.
    """

    kind: str
    name: str
    schema_version: int
    schema_known: int
    remark: str
    size_bytes: int  # without the log
    log_bytes: int = 0
    free_bytes: int | None = None
    backed_up_at_ms: int | None = None


class ServiceConstants(msgspec.Struct, frozen=True):
    """What does not change while the service runs. `on_outage`: PETSTORE_LIMITER_OUTAGE."""

    commit: str
    with_valkey: bool
    on_outage: str
    replicas: int
    workers: int
    removal_at_ms: int  # when the deprecated operation ends: PETSTORE_REMOVAL_DATE


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all workers of this replica.

    `history`: values of the last ten minutes by name, oldest first, None where unknown. `in_outage` counts
    the processes that can't reach Valkey, `outages` how often since the start. `serving` counts workers, None
    where nobody supervises them; `ended` counts by cause those that ended by themselves.
    """

    known: ServiceConstants
    version: str
    python: str
    recent: Recent
    history: Mapping[str, Sequence[float | None]]
    waiting: int  # writes in SQLite's queue, requests that wait for a connection to PostgreSQL
    database: DatabaseState | None  # None: it can't be read
    in_outage: int
    outages: int
    serving: int | None
    ended: Mapping[str, int]
    reloads: Mapping[str, int]
    newest_started_at_ms: int
    memory_bytes: int
    connections: int
    counters_saved_at_ms: int
    log_lines_dropped: int
    troubles: Sequence[Trouble]  # what is wrong now, the worst first


class Period(msgspec.Struct, frozen=True):
    """An hour of UTC, or several. `without_fault`: percent of the answers without 5xx, rounded down; None
    without answers, as is the latency.
    """

    began_at_ms: int
    without_fault: float | None
    latency: Latency | None


class ServiceStatus(msgspec.Struct, frozen=True):
    """What callers may know of this replica, one of `replicas`, since a moment at most a day ago.

    `state` is `well`, `failing` (some requests fail) or `down`. `hours` has the newest first, `whole` all.
    """

    state: str
    since_ms: int
    replicas: int
    whole: Period
    hours: Sequence[Period]


# The service's own numbers. Once a minute a call waits until the size of the database is read.
ReadState = Callable[[], Awaitable[ServiceState]]
