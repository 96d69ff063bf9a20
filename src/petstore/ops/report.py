"""The service's state for pages, and what is wrong with it, for a reader who has no Prometheus.

The thresholds are from deploy/prometheus/rules.yaml, which a test compares.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import structlog

from petstore import __version__
from petstore.core.clock import Clock
from petstore.core.durations import DAY_MS
from petstore.core.errors import OperatorError, StoreUnavailable
from petstore.core.service import DatabaseState, ServiceConstants, ServiceState, Trouble
from petstore.ops.history import ServiceHistory
from petstore.ops.supervision import SupervisorMetrics, read_metrics

_DATABASE_READ_EVERY_SECONDS = 60

BACKUP_OLD_DAYS = 2
SAVED_LATE_SECONDS = 60
WRITES_WAITING = 500
DESCRIPTORS_USED = 0.8
ROOM_FOR_COPIES = 3

_log = structlog.get_logger("petstore.report")


class Report(msgspec.Struct):
    """The service's own numbers: `state`. `read_database` may block and is called in a thread; the supervisor
    writes its metrics to `directory`."""

    history: ServiceHistory
    read_database: Callable[[], DatabaseState]
    saving_trouble: Callable[[], str | None]
    known: ServiceConstants
    directory: Path | None
    clock: Clock
    _reading: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    _database: DatabaseState | None = None
    _read_at: float | None = None

    async def state(self) -> ServiceState:
        self.history.refresh()
        database = await self._current_database()
        supervisor = read_metrics(self.directory)
        counts, gauges = self.history.latest.counts, self.history.latest.gauges
        return ServiceState(
            known=self.known,
            version=__version__,
            python=platform.python_version(),
            recent=self.history.recent(),
            history=self.history.series(),
            waiting=gauges.writes_waiting + gauges.pool_waiting,
            database=database,
            in_outage=gauges.in_outage,
            outages=counts.outages,
            serving=supervisor.workers,
            ended=supervisor.restarts,
            reloads=supervisor.reloads,
            newest_started_at_ms=round(gauges.started_at * 1_000),
            memory_bytes=gauges.resident_bytes,
            connections=gauges.connections,
            counters_saved_at_ms=round(gauges.counters_saved_at * 1_000),
            log_lines_dropped=counts.lines_dropped,
            troubles=list(self._troubles(database, supervisor)),
        )

    async def _current_database(self) -> DatabaseState | None:
        async with self._reading:
            now = self.clock.monotonic()
            if self._read_at is None or now - self._read_at >= _DATABASE_READ_EVERY_SECONDS:
                try:
                    self._database = await asyncio.to_thread(self.read_database)
                except (OSError, OperatorError, StoreUnavailable) as error:
                    _log.warning("database not read", reason=str(error))
                    self._database = None
                self._read_at = now
            return self._database

    def _troubles(self, database: DatabaseState | None, supervisor: SupervisorMetrics) -> Iterator[Trouble]:
        yield from self._of_answers()
        yield from self._of_limits()
        yield from self._of_database(database)
        yield from self._of_processes(supervisor)

    def _of_answers(self) -> Iterator[Trouble]:
        if errors := round(self.history.total("errors")):
            yield Trouble(
                f"{errors:,} {'answer' if errors == 1 else 'answers'} failed in the last ten minutes (5xx).",
                "The log says why: look for “store unavailable” and “unexpected error”.",
            )
        gauges = self.history.latest.gauges
        if gauges.writes_waiting > WRITES_WAITING or gauges.pool_waiting:
            yield Trouble(
                f"Requests that wait for the database: {gauges.writes_waiting + gauges.pool_waiting:,}.",
                "See whether its disk is slow; with PostgreSQL raise PETSTORE_DATABASE_POOL.",
            )

    def _of_limits(self) -> Iterator[Trouble]:
        if lost := self.history.latest.gauges.in_outage:
            effect = (
                "requests are refused"
                if self.known.on_outage == "refuse"
                else "each process grants its share of the limits"
            )
            yield Trouble(
                f"{lost} of {self.known.workers} processes can't reach Valkey: {effect}.",
                "Start Valkey again, or repair the network; the service reconnects by itself.",
            )
        saved_ms = self.history.latest.gauges.counters_saved_at * 1_000
        late = self.clock.now_ms() - saved_ms > SAVED_LATE_SECONDS * 1_000 and saved_ms > 0
        if (reason := self.saving_trouble()) is not None or late:
            yield Trouble(
                f"Limits and usage have not been saved{(reason or '').removeprefix('not')}".rstrip(".") + ".",
                "A crash now loses these counts. Repair the database or its disk.",
            )

    def _of_database(self, database: DatabaseState | None) -> Iterator[Trouble]:
        if not self.history.latest.gauges.store_up:
            yield Trouble(
                "The database does not answer every worker: requests are answered 503.",
                "The details of /readyz say why.",
            )
        if database is None:
            yield Trouble("The database can't be read.", "The log says why: “database not read”.")
            return
        if database.remark:
            yield Trouble(
                f"The program and the database differ: {database.remark}.",
                "Run the program that belongs to the schema.",
            )
        stored = database.size_bytes + database.log_bytes
        if database.free_bytes is not None and database.free_bytes < ROOM_FOR_COPIES * stored:
            yield Trouble(
                "The database's disk has little room: less than three copies of the database.",
                "Free some space: writes fail on a full disk, and a restore needs that much.",
            )
        backed_up_ms = database.backed_up_at_ms
        if backed_up_ms is not None and self.clock.now_ms() - backed_up_ms > BACKUP_OLD_DAYS * DAY_MS:
            yield Trouble(
                "There is no backup yet." if not backed_up_ms else "The last backup is older than two days.",
                "Run “petstore db backup FILE”, and let a timer do it each day.",
            )

    def _of_processes(self, supervisor: SupervisorMetrics) -> Iterator[Trouble]:
        gauges = self.history.latest.gauges
        if supervisor.workers is not None and supervisor.workers < self.known.workers:
            yield Trouble(
                f"{supervisor.workers} of {self.known.workers} workers serve.",
                "New ones start by themselves; the log says why the others ended.",
            )
        if supervisor.background is False:
            yield Trouble(
                "The background process does not run: stock lists, webhooks and mail wait.",
                "It is started again by itself; the log says why it ended.",
            )
        if supervisor.is_replaced:
            yield Trouble(
                "Another version is installed than the one that runs.", "Restart the service to use it."
            )
        if gauges.open_descriptors > DESCRIPTORS_USED * gauges.max_descriptors > 0:
            yield Trouble(
                f"A worker has {gauges.open_descriptors:,} of {gauges.max_descriptors:,} descriptors open.",
                "Raise LimitNOFILE, or find the clients that keep connections open.",
            )
        if dropped := round(self.history.total("lines_dropped")):
            yield Trouble(
                f"{dropped:,} log lines were not written in the last ten minutes.",
                "See who reads the log, and whether its disk is full.",
            )
