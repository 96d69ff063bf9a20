"""A heartbeat on the server's core: whether a server that does not answer works, waits, or has no core.

`python -m verification.benchmarks.load.heartbeat FILES` beats each millisecond until its standard input ends,
then prints its Beats. FILES are descriptors of the schedstat of each thread of the server: nanoseconds on a
core, and ready to run but without one.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from verification.benchmarks.load.open_loop import Interval
from verification.benchmarks.machine import ROOT, cores

_BEAT_SECONDS = 0.001
_LATE_SECONDS = 0.002


class Beats(msgspec.Struct):
    """Intervals by time.monotonic(): this process did not run, something else had the core of the server
    that was ready to run, and the server had it."""

    late: list[Interval] = []
    without_core: list[Interval] = []
    working: list[Interval] = []


@contextlib.contextmanager
def heartbeat(pid: int) -> Iterator[Beats]:
    """Beside a process of a server. The beats are there after the block."""
    files = [os.open(file, os.O_RDONLY) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    taken = Beats()
    with subprocess.Popen(
        [sys.executable, "-m", "verification.benchmarks.load.heartbeat", *map(str, files)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        pass_fds=files,
    ) as process:
        for file in files:
            os.close(file)
        yield taken
        beats = msgspec.json.decode(process.communicate()[0], type=Beats)
        taken.late, taken.without_core, taken.working = beats.late, beats.without_core, beats.working


def _beat(files: list[int]) -> Beats:
    taken = Beats()
    before = [_ran_and_waited(file) for file in files]
    times, runs = [0.0], [0.0]
    while True:
        due = time.monotonic() + _BEAT_SECONDS
        if select.select([sys.stdin], [], [], _BEAT_SECONDS)[0]:
            return taken
        now = time.monotonic()
        if now - due > _LATE_SECONDS:
            taken.late.append((due, now))
        threads = [_ran_and_waited(file) for file in files]
        waited = max(after[1] - earlier[1] for after, earlier in zip(threads, before, strict=True))
        times.append(now)
        runs.append(sum(ran for ran, _ in threads))
        # A thread also waits for others of its own process.
        ran = runs[-1] - runs[bisect.bisect(times, now - waited) - 1]
        if waited > _LATE_SECONDS and ran < waited / 2:
            taken.without_core.append((now - waited, now))
        if runs[-1] - runs[-2] > (now - times[-2]) / 2:
            taken.working.append((times[-2], now))
        before = threads


def _ran_and_waited(file: int) -> tuple[float, float]:
    """Seconds of a thread on a core, and of waiting for one; zeros once it has ended."""
    try:
        ran, waited, _ = os.pread(file, 100, 0).split()
    except ProcessLookupError:
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9


if __name__ == "__main__":
    os.sched_setaffinity(0, cores()[0])
    print(msgspec.json.encode(_beat([int(file) for file in sys.argv[1:]])).decode())
