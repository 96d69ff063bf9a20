"""Imports: stock lists are imported beside a server on a file or on PostgreSQL, and killed at random moments.
All of a list is there or nothing of it.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.support.imports import play
from tests.support.postgres import fresh_database
from tests.support.report import Report

_KILLS_A_ROUND = 12  # of each of two lists


def run(report: Report, seed: int, seconds: float) -> None:
    """Every other seed on PostgreSQL."""
    for number in report.rounds(seed, seconds):
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            url = stack.enter_context(fresh_database()) if number % 2 else f"sqlite:///{name}/petstore.db"
            play(url, Path(name), report, number, _KILLS_A_ROUND)
