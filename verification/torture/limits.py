"""Limits: eight processes on one account, killed in half of the rounds. No window admits one request too many
or too few.
"""

from __future__ import annotations

import asyncio

from tests.support.limits import play
from tests.support.report import Report
from tests.support.valkey import Client, ValkeyServer

_WINDOWS_A_ROUND = 20


def run(report: Report, seed: int, seconds: float) -> None:
    """Some windows from each seed; those of even seeds kill workers."""
    with ValkeyServer().start() as server:
        for number in report.rounds(seed, seconds):
            Client(server.url)("FLUSHALL")
            asyncio.run(play(server.url, number, report, _WINDOWS_A_ROUND, kills=number % 2 == 0))
