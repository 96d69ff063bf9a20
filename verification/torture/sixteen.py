"""Sixteen: so many real processes with one key on the Free plan, and a real server.
None is banned. There is a window for each minute of --seconds.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.report import Report
from tests.support.server import Server, issue_key, running_server
from verification.simulation.callers.fleet import PROCESSES
from verification.simulation.callers.program import DEMANDS

_PER_MINUTE, _PER_DAY = 60, 1_000  # the Free plan's


def run(report: Report, seed: int, seconds: float) -> None:
    """One round; each process has a kind of demand from the seed."""
    report.counts["windows"] = windows = max(1, round(seconds / 60))
    with tempfile.TemporaryDirectory() as folder:
        key = issue_key(Path(folder) / "petstore.db", "free", per_minute=_PER_MINUTE, per_day=_PER_DAY)
        with running_server(Path(folder), access_log="off") as server:
            _crowd(report, seed, windows, server, key)
            if bans := server.log.count("ban began"):
                report.fault(f"the key was banned {bans} times")


def _crowd(report: Report, seed: int, windows: int, server: Server, key: str) -> None:
    """All processes at once, until they end."""
    rng = random.Random(seed)
    children = [_child(rng.choice(list(DEMANDS)), server, key, windows) for _ in range(PROCESSES)]
    for child in children:
        calls, failed = map(int, child.communicate()[0].split())
        report.counts["calls"] += calls
        report.counts["calls that gave up"] += failed
    with server.client(key) as client:
        usage = client.usage()
    report.note(
        f"used {usage.day.used:,} of {_PER_MINUTE * windows:,} requests, {usage.days[0].refused} refused"
    )


def _child(demand: str, server: Server, key: str, windows: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "verification.simulation.callers.program",
        server.base_url,
        demand,
        str(60 * windows),
    ]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(f"{key}\n")
    child.stdin.flush()
    return child
