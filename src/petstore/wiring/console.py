"""The console with what it shows of the service."""

from __future__ import annotations

from pathlib import Path

from petstore.config import Settings
from petstore.console.app import Console
from petstore.console.desk import ConsoleOptions
from petstore.core.clock import Clock
from petstore.core.service import DatabaseState, ServiceConstants
from petstore.ops import build, disk
from petstore.ops.flusher import CounterFlusher
from petstore.ops.history import ServiceHistory
from petstore.ops.report import Report
from petstore.storage.backend import Backend
from petstore.storage.store import Store


def build_console(
    settings: Settings,
    store: Store,
    backend: Backend,
    history: ServiceHistory,
    flusher: CounterFlusher,
    metrics_directory: Path | None,
    clock: Clock,
) -> Console | None:
    """The console; None where it is switched off."""
    if not settings.has_console:
        return None
    known = ServiceConstants(
        commit=build.commit(),
        with_valkey=bool(settings.valkey_url),
        on_outage=settings.limiter_outage,
        replicas=settings.replicas,
        workers=settings.workers,
        removal_at_ms=settings.removal_at_ms,
    )
    report = Report(
        history, lambda: read_database(backend), lambda: flusher.trouble, known, metrics_directory, clock
    )
    options = ConsoleOptions(
        trusted=settings.trusted_proxies,
        hosts=settings.own_hosts,
        base=settings.base_url.removesuffix("/v1"),
        body_timeout_seconds=settings.body_timeout_ms / 1_000,
        environments=settings.key_environments,
        overlap_ms=settings.key_rotation_overlap_ms,
        sends_mail=settings.smtp_url is not None,
        is_staging=settings.is_staging,
        zone=settings.time_zone,
    )
    return Console(store, clock, report.state, options)


def read_database(backend: Backend) -> DatabaseState:
    """Blocks. Raises OSError, ConfigurationError and StoreUnavailable."""
    schema = backend.schema()
    file = backend.file
    free = backed_up = None
    log = 0
    if file is not None:
        log = round(disk.log_bytes(file.checked_path()))
        free = round(disk.free(file.checked_path().resolve().parent))
        backed_up = round(disk.stat(file.backup_mark(), "st_mtime") * 1_000)
    return DatabaseState(
        kind="PostgreSQL" if file is None else "SQLite",
        name=backend.name,
        schema_version=schema.version,
        schema_known=schema.newest,
        remark=schema.remark,
        size_bytes=backend.size_bytes(),
        log_bytes=log,
        free_bytes=free,
        backed_up_at_ms=backed_up,
    )
