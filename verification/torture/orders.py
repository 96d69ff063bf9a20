"""Orders: 64 callers order the same animal at once, 100 animals, on a file with stores of commands beside its
service, and through two replicas; they are killed in half of the rounds. Each animal goes to one caller.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.orders import KINDS, play
from tests.support.report import Report

_CALLERS, _ANIMALS = 64, 100


def run(report: Report, seed: int, seconds: float) -> None:
    """One race from each seed; four in a row are of every kind, without and with kills."""
    for number in report.rounds(seed, seconds):
        with tempfile.TemporaryDirectory() as folder:
            kind, kills = KINDS[number % 2], number // 2 % 2 == 1
            play(kind, Path(folder), report, number, _CALLERS, _ANIMALS, kills=kills)
