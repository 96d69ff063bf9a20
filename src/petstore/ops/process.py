"""Memory, processor time, descriptors and start time of this process (Linux; elsewhere 0)."""

from __future__ import annotations

import resource
from pathlib import Path

from petstore.ops.counts import Counts, Gauges

# Fields after the name in /proc/PID/stat, which may hold spaces and brackets: proc(5), fields 22 to 24.
_STARTED, _VIRTUAL, _RESIDENT = 19, 20, 21


def _stat(process: int | str) -> list[str]:
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def started_ticks(process: int) -> int | None:
    """The start of a process in clock ticks since boot; None when there is no such process."""
    fields = _stat(process)
    return int(fields[_STARTED]) if fields else None


def open_descriptors() -> int:
    try:
        # Linux 6.2 has the number as the size; listing 16,000 takes milliseconds.
        folder = Path("/proc/self/fd")
        return folder.stat().st_size or sum(1 for _ in folder.iterdir()) - 1
    except OSError:
        return 0


class ProcessUse:
    """Reads the numbers of this process in about 50 microseconds; `started_ms`: when it began to serve."""

    def __init__(self, started_ms: int) -> None:
        self._page_bytes = resource.getpagesize()
        self._started_at = started_ms / 1_000

    def update_metrics(self, counts: Counts, gauges: Gauges) -> None:
        use = resource.getrusage(resource.RUSAGE_SELF)
        counts.cpu_seconds = use.ru_utime + use.ru_stime
        gauges.started_at = self._started_at
        gauges.open_descriptors = open_descriptors()
        gauges.max_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        fields = _stat("self")
        if fields:
            gauges.virtual_bytes = int(fields[_VIRTUAL])
            gauges.resident_bytes = int(fields[_RESIDENT]) * self._page_bytes
