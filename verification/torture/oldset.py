"""Valkey with older data: no more is handed out again than the store could not know, no ban is forgotten."""

from __future__ import annotations

import asyncio

from tests.support.oldset import play
from tests.support.report import Report
from tests.support.valkey import ValkeyServer


def run(report: Report, seed: int, seconds: float) -> None:
    """One account's day in each round."""
    with ValkeyServer().start() as server:
        for number in report.rounds(seed, seconds):
            asyncio.run(play(server, number, report))
