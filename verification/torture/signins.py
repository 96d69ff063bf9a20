"""Storms of wrong passwords: 10,000 at once at two replicas on PostgreSQL, and at a service on SQLite. The
bound holds exactly, few hashes are computed, and a person with the right password gets in meanwhile.
"""

from __future__ import annotations

import asyncio
import tempfile
import time

from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database
from tests.support.report import Report
from tests.support.sign_ins import replicas, storm

_TRIES = 10_000


async def _round(report: Report, url: str, count: int, seed: int) -> None:
    async with replicas(url, ManualClock(), count) as applications:
        began = time.monotonic()
        seen = await storm(applications, _TRIES, seed)
        report.took(f"{count} replicas", time.monotonic() - began)
    report.counts["wrong ones"] += seen.statuses.total()
    report.counts["compared"] += seen.statuses[403]
    report.counts["turned away as busy"] += seen.statuses[503]
    report.counts["right ones"] += len(seen.right)
    report.most("hashes in a storm", seen.hashes)
    for fault in seen.faults():
        report.fault(f"{count} replicas: {fault}")


def run(report: Report, seed: int, seconds: float) -> None:
    """A storm at each kind of service from each seed."""
    for number in report.rounds(seed, seconds):
        with fresh_database() as url:
            asyncio.run(_round(report, url, 2, number))
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_round(report, f"sqlite:///{folder}/petstore.db", 1, number))
