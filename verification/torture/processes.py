"""Processes: sixteen with one key on the Free plan, told nothing of each other, for ten windows, in twelve
kinds of demand on a steered clock. None is banned, and together they use what the plan has.
"""

from __future__ import annotations

from tests.support.report import Report
from verification.simulation.callers.fleet import KINDS
from verification.simulation.callers.fleets import play


def run(report: Report, seed: int, seconds: float) -> None:
    """Each kind of demand from each seed."""
    shares: dict[str, list[float]] = {}
    for number in report.rounds(seed, seconds):
        for (kind, _), result in play(KINDS, [number]).items():
            for fault in result.faults:
                report.fault(f"{kind}: {fault}")
            report.counts["calls"] += result.made.calls
            report.counts["refusals"] += result.answers[429]
            report.most("strikes of 60", result.strikes)
            shares.setdefault(kind, []).append(result.used)
    for kind, used in shares.items():
        report.note(
            f"{kind}: {min(used):.0%} to {max(used):.0%} of the quota used, mean {sum(used) / len(used):.0%}"
        )
