"""What a store tells about its own work, for metrics. It must be quick and may be called from any thread."""

from __future__ import annotations

from typing import Protocol

import msgspec


class StoreLoad(msgspec.Struct, frozen=True):
    """What is under way: SQLite has a queue of writes, PostgreSQL a pool of connections."""

    writes_waiting: int = 0
    pool_in_use: int = 0
    pool_waiting: int = 0
    pool_open: int = 0


class StoreObserver(Protocol):
    """Receives timings in seconds."""

    def committed(self, jobs: int, seconds: float) -> None:
        """One group of writes was made durable."""
        ...


class MigrationObserver(Protocol):
    """Told of what a migration does, as it is done."""

    def backed_up(self, file: str) -> None:
        """The database of before the first step was copied to this file."""
        ...

    def applied(self, step: str) -> None:
        """A step was committed."""
        ...
