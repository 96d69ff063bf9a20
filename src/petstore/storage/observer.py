"""What a store tells about its own work, for metrics. It must be quick and may be called from any thread."""

from __future__ import annotations

from typing import Protocol


class StoreObserver(Protocol):
    """Receives timings in seconds."""

    def committed(self, jobs: int, seconds: float) -> None:
        """One group of writes was made durable."""
        ...
