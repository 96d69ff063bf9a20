"""Power cuts: each round records a script and cuts it a few hundred times; nothing acknowledged is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support import powercut
from tests.support.report import Report

_CUTS_A_RECORDING = 500
_JOBS = 90


def run(report: Report, seed: int, seconds: float) -> None:
    """A fault says all that is needed to repeat its cut."""
    for number in report.rounds(seed, seconds):
        with tempfile.TemporaryDirectory(prefix="powercut-") as name:
            recording = powercut.record(Path(name), number, _JOBS)
            for cut in powercut.choose(recording, number, _CUTS_A_RECORDING):
                faults = powercut.check(recording, cut, powercut.leave(recording, cut, Path(name) / "cut"))
                report.counts["cuts"] += 1
                report.counts["acknowledged"] += sum(at <= cut.at for at, _, _ in recording.added)
                if faults:
                    report.fault(f"{cut}: {'; '.join(faults[:5])}")
