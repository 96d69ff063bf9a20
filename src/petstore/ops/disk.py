"""Sizes of the database's files, and free space on their disk, from the file system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric


def database_metrics(path: Path, backup_mark: Path) -> Callable[[], Iterable[Metric]]:
    """The metrics of a SQLite file. `backup_mark`: a file that each backup touches."""

    def collect() -> Iterable[Metric]:
        for name, text, value in (
            ("database_bytes", "Size of the database.", stat(path, "st_size")),
            ("database_log_bytes", "Size of SQLite's log.", log_bytes(path)),
            ("disk_free_bytes", "Room on the database's disk.", free(path.parent)),
            ("backup_timestamp_seconds", "The last sound backup, or 0.", stat(backup_mark, "st_mtime")),
        ):
            yield GaugeMetricFamily(f"petstore_{name}", text, value=value)

    return collect


def log_bytes(path: Path) -> float:
    """The size of a database's log."""
    return stat(path.with_name(f"{path.name}-wal"), "st_size")


def stat(path: Path, field: str) -> float:
    """A field of os.stat, such as st_size; 0 if the file is missing."""
    try:
        return float(getattr(path.stat(), field))
    except OSError:
        return 0


def free(directory: Path) -> float:
    """Bytes that this user may still write there; 0 when it can't be read."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0
    return float(found.f_bavail * found.f_frsize)
