"""Reports of a store for metrics. Observers must be quick; any thread may call them."""

from __future__ import annotations

from typing import Protocol

import msgspec


class StoreLoad(msgspec.Struct, frozen=True):
    """Current load: SQLite has a queue of writes, PostgreSQL a pool of connections."""

    writes_waiting: int = 0
    pool_in_use: int = 0
    pool_waiting: int = 0


class StoreObserver(Protocol):
    """Receives timings in seconds."""

    def committed(self, jobs: int, seconds: float) -> None:
        """One group of writes was made durable."""


class MigrationObserver(Protocol):
    """Receives the progress of a migration."""

    def backed_up(self, file: str) -> None:
        """The database was copied to this file before the first step."""

    def closed(self, line: str) -> None:
        """Other users could open the file before, as the line says."""

    def applied(self, step: str) -> None:
        """A step was committed."""
