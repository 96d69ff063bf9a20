"""Several measurements taken by turns, so that a slow minute of the machine hits all of them alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import msgspec


class Plan(msgspec.Struct, frozen=True):
    """How long each turn lasts, and how many turns each measurement gets."""

    seconds: float = 4.0
    rounds: int = 5


def medians_over_starts(one_round: Callable[[Plan], dict[str, float]], plan: Plan) -> dict[str, float]:
    """Medians of rounds that start their servers anew: one process of a server is up to 7 % quicker than
    the next one, for as long as it lives."""
    once = msgspec.structs.replace(plan, rounds=1)
    taken = [one_round(once) for _ in range(plan.rounds)]
    return {name: statistics.median(values[name] for values in taken) for name in taken[0]}


def medians(measurements: dict[str, Callable[[], float]], plan: Plan) -> dict[str, float]:
    """Each measurement's median over the rounds; within a round they follow each other."""
    taken: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(plan.rounds):
        for name, measure in measurements.items():
            taken[name].append(measure())
    return {name: statistics.median(values) for name, values in taken.items()}
