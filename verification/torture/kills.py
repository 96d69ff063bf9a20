"""Kills: a server on a file is killed at random moments under load and started again. What was answered is
there under its identifier, what was not is there once or not at all, and the journal agrees.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.kills import play
from tests.support.report import Report

_KILLS_A_ROUND = 20


def run(report: Report, seed: int, seconds: float) -> None:
    """A file of its own for each seed."""
    for number in report.rounds(seed, seconds):
        with tempfile.TemporaryDirectory() as folder:
            play(Path(folder), report, number, _KILLS_A_ROUND)
