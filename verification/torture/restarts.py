"""Restarts: PostgreSQL is stopped at random moments under load, as in a crash or in order, and started again.
Nothing that was acknowledged is lost, and nothing is there twice.
"""

from __future__ import annotations

import asyncio
import random
import signal

from petstore.core.limits.plans import FREE
from petstore.storage.backend import backend_for
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.report import Report
from tests.support.restarts import Load

_RESTARTS_A_ROUND = 10


async def _round(report: Report, server: PostgresServer, url: str, seed: int) -> None:
    chance = random.Random(seed)
    store = backend_for(url).open(ManualClock())
    try:
        await store.accounts.add("shop", FREE, ACTOR)
        load = Load(store)
        async with load.going_on():
            for _ in range(_RESTARTS_A_ROUND):
                how = chance.choice([signal.SIGQUIT, signal.SIGQUIT, signal.SIGINT])
                report.took("first success", await load.restart(server, how, chance.randrange(400)))
                report.counts["restarts"] += 1
    finally:
        await store.close()
    report.counts["acknowledged"] += len(load.acknowledged)
    for fault in load.faults(url)[:5]:
        report.fault(fault)


def run(report: Report, seed: int, seconds: float) -> None:
    """Some restarts from each seed, on a database of its own."""
    with PostgresServer(on_disk=True).start() as server:
        for number in report.rounds(seed, seconds):
            with fresh_database(server.url()) as url:
                asyncio.run(_round(report, server, url, number))
