"""What a service takes of ops/: its log, its metrics, and the saving of its counters."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from petstore.config import Settings
from petstore.config.systemd import read_systemd
from petstore.core.clock import Clock
from petstore.core.errors import OperatorError, StoreUnavailable
from petstore.ops import build, logs
from petstore.ops.access_log import AccessFormat
from petstore.ops.counts import Counts, Gauges
from petstore.ops.disk import database_metrics
from petstore.ops.flusher import CounterFlusher
from petstore.ops.health import Health
from petstore.ops.log_writers import LogWriter
from petstore.ops.metrics import Metrics
from petstore.ops.process import ProcessUse
from petstore.ops.supervision import supervision_metrics
from petstore.ops.worker_metrics import WorkerMetricsDirectory
from petstore.storage.backend import Backend
from petstore.storage.store import Store

_log = structlog.get_logger("petstore")


def start_log(settings: Settings, worker: int) -> LogWriter:
    """Set up the log of a process that serves: a thread writes the lines, until `close`."""
    access = AccessFormat(
        trusted_proxies=settings.trusted_proxies,
        addresses=settings.log_address,
        worker=worker,
        mark=settings.log_mark,
    )
    return logs.start(
        settings.log_level,
        settings.log_format,
        access=access,
        journal_stream=read_systemd().journal_stream,
        worker=worker,
        mark=settings.log_mark,
    )


def start_log_of_parent(settings: Settings) -> logs.Output:
    """Set up the log of a process that only forks workers. Returns where it goes."""
    stream, mark = read_systemd().journal_stream, settings.log_mark
    return logs.start_directly(settings.log_level, settings.log_format, journal_stream=stream, mark=mark)


def build_metrics(settings: Settings, metrics_directory: Path | None) -> Metrics:
    """The metrics of this process, shared with other workers by `metrics_directory`."""
    shared = WorkerMetricsDirectory(metrics_directory, os.getpid()) if metrics_directory else None
    metrics = Metrics(shared, build.commit(), settings.stage or "")
    metrics.add_collector(supervision_metrics(metrics_directory))
    return metrics


def measure(
    backend: Backend,
    clock: Clock,
    metrics: Metrics,
    store: Store,
    flusher: CounterFlusher,
    log_writer: LogWriter,
) -> None:
    """Let metrics show the load of the store, the process, the log and the disk; before the first request."""

    def update_metrics(counts: Counts, gauges: Gauges) -> None:
        load = store.load()
        gauges.writes_waiting = load.writes_waiting
        gauges.pool_in_use, gauges.pool_waiting = load.pool_in_use, load.pool_waiting
        gauges.counters_saved_at = flusher.saved_ms / 1_000
        counts.lines_dropped = log_writer.dropped

    metrics.add_source(update_metrics)
    metrics.add_source(ProcessUse(clock.now_ms()).update_metrics)
    if (file := backend.file) is not None:
        metrics.add_collector(database_metrics(file.checked_path().resolve(), file.backup_mark()))


def run_until_closed(flusher: CounterFlusher, opened: AsyncExitStack) -> None:
    """Save counters about once a second until `opened` is closed, and then once more."""
    running = asyncio.create_task(flusher.run())

    async def save_last() -> None:
        flusher.stop()
        await running
        try:
            await flusher.save()
        except (StoreUnavailable, OperatorError) as error:
            _log.error("the last counters could not be saved", reason=str(error))

    opened.push_async_callback(save_last)


def check_until_closed(health: Health, opened: AsyncExitStack) -> None:
    """Keep the gauges of health right until `opened` is closed."""
    checking = asyncio.create_task(health.run())

    async def stop() -> None:
        checking.cancel()
        await asyncio.wait([checking])

    opened.push_async_callback(stop)
