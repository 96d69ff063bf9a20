"""Several measurements taken by turns, so that a slow minute of the machine hits all of them alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import msgspec


class Plan(msgspec.Struct, frozen=True):
    """How long each turn lasts, and how many turns each measurement gets."""

    seconds: float = 4.0
    rounds: int = 5


def medians(measurements: dict[str, Callable[[], float]], plan: Plan) -> dict[str, float]:
    """Each measurement's median over the rounds; within a round they follow each other."""
    taken: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(plan.rounds):
        for name, measure in measurements.items():
            taken[name].append(measure())
    return {name: statistics.median(values) for name, values in taken.items()}
