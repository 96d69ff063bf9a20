"""Reports of a store, for metrics and operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec


class StoreLoad(msgspec.Struct, frozen=True):
    """Current load: SQLite has a queue of writes, PostgreSQL a pool of connections."""

    writes_waiting: int = 0
    pool_in_use: int = 0
    pool_waiting: int = 0


# Hears how many writes were made durable together, in how many seconds. Must be quick; any thread calls it.
Committed = Callable[[int, float], object]


class MigrationObserver(Protocol):
    """Receives the progress of a migration."""

    def backed_up(self, file: str) -> None:
        """The database was copied to this file before the first step."""

    def closed(self, line: str) -> None:
        """Other users could open the file before, as the line says."""

    def applied(self, step: str) -> None:
        """A step was committed."""
