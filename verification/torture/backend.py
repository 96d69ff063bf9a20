"""Killed backends: a process of PostgreSQL is killed between a rollback and a commit, after which transaction
ids are given out again. No list and no key is answered from before the commit.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.support.crashes import Crashes
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.report import Report
from tests.support.service import open_shop

_KILLS_A_ROUND = 20


async def _round(report: Report, server: PostgresServer, url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_shop(Path(folder), database_url=url) as shop:
            crashes = Crashes(server, url, shop)
            for _ in range(_KILLS_A_ROUND):
                for fault in await crashes.round():
                    report.fault(fault)
                report.counts["processes killed"] += 1


def run(report: Report, seed: int, seconds: float) -> None:
    """The rounds are all alike, each on a database of its own."""
    with PostgresServer().start() as server:
        for _ in report.rounds(seed, seconds):
            with fresh_database(server.url()) as url:
                asyncio.run(_round(report, server, url))
