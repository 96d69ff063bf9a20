"""Sixteen: so many real processes with one key on the Free plan, and a real server.
None is banned, and together they never get more than the limit. Each minute of --seconds has a window.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.report import Report
from tests.support.server import Server, issue_key, running_server
from verification.simulation.callers.fleet import PROCESSES
from verification.simulation.callers.program import DEMANDS

_PER_MINUTE, _PER_DAY = 60, 1_000  # the Free plan's
_WINDOW_SECONDS = 60


def run(report: Report, seed: int, seconds: float) -> None:
    """One round; each process has a kind of demand from the seed."""
    report.counts["windows"] = windows = max(1, round(seconds / _WINDOW_SECONDS))
    with tempfile.TemporaryDirectory() as folder:
        key = issue_key(Path(folder) / "petstore.db", "free", per_minute=_PER_MINUTE, per_day=_PER_DAY)
        with running_server(Path(folder), access_log="off") as server:
            _crowd(report, seed, windows, server, key)
            if bans := server.log.count("ban began"):
                report.fault(f"the key was banned {bans} times")


def _crowd(report: Report, seed: int, windows: int, server: Server, key: str) -> None:
    """All processes at once, until they end."""
    rng = random.Random(seed)
    # The first window begins later, with the full second that its first request came in.
    ends_at = time.time() + _WINDOW_SECONDS * windows - 1
    children = [_child(rng.choice(list(DEMANDS)), server, key, ends_at) for _ in range(PROCESSES)]
    for child in children:
        calls, failed = map(int, child.communicate()[0].split())
        report.counts["calls"] += calls
        report.counts["calls that gave up"] += failed
    with server.client(key) as client:
        usage = client.usage()
    used, limit = usage.day.used - 1, _PER_MINUTE * windows  # without this request
    report.note(f"used {used:,} of {limit:,} requests, {usage.days[0].refused} refused")
    if used > limit:
        report.fault("more than the limit was used")


def _child(demand: str, server: Server, key: str, ends_at: float) -> subprocess.Popen[str]:
    words = ("-m", "verification.simulation.callers.program", server.base_url, demand, str(ends_at))
    command = [sys.executable, *words]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(f"{key}\n")
    child.stdin.flush()
    return child
