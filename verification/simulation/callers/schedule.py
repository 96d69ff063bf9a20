"""What one run is like, drawn from its seed: quota, tasks, weather, others with the account."""

from __future__ import annotations

import random

import msgspec

from verification.simulation.callers.network import FAULTS, Weather

_DAY_SECONDS = 86_400
KINDS = ("calm", "storm", "mates", "banned", "restarts", "tight", "day")


class Mate(msgspec.Struct, frozen=True):
    """Somebody who has another key of the account and heeds nothing; times in seconds."""

    begins: float
    calls: int
    pause: float


class Schedule(msgspec.Struct, frozen=True):
    """One run. Times are in seconds from its beginning."""

    seed: int
    kind: str
    begins: float  # of its UTC day
    per_minute: int
    per_day: int = 100_000
    tasks: int = 1
    calls: int = 1  # of each task
    rest: float = 0.0  # between the calls of a task, at the most
    budget: float = 6 * 3600.0  # of each call
    weather: Weather = Weather()
    weather_ends: float = 0.0
    mates: tuple[Mate, ...] = ()
    bans: int = 0  # earned with the key before, by somebody else
    restarts: tuple[float, ...] = ()
    skew: float = 0.0  # of the caller's wall clock


def draw(seed: int) -> Schedule:
    """The schedule of a seed."""
    rng = random.Random(f"schedule {seed}")
    kind = rng.choice(KINDS)
    per_minute = rng.choice((3, 5, 10, 20, 60))
    tasks = rng.choice((1, 1, 2, 4, 8, 12))
    calls = max(1, min(20, round(per_minute * rng.uniform(0.5, 3) / tasks)))
    schedule = Schedule(
        seed=seed,
        kind=kind,
        begins=rng.uniform(0, _DAY_SECONDS),
        per_minute=per_minute,
        tasks=tasks,
        calls=calls,
        rest=rng.choice((0.0, 0.0, 1.0, 10.0)),
        skew=rng.choice((0.0, 0.0, -3_600.0, 90.0, 86_400.0)),
    )
    return msgspec.structs.replace(schedule, **_of_kind(kind, schedule, rng))


def _of_kind(kind: str, schedule: Schedule, rng: random.Random) -> dict[str, object]:
    """What distinguishes a kind."""
    if kind == "mates":
        return {"mates": _mates(rng, schedule), "weather": _weather(rng, 0.05), "weather_ends": 300.0}
    if kind == "storm":
        mates = _mates(rng, schedule) if rng.random() < 0.3 else ()
        return {"weather": _weather(rng, rng.uniform(0.05, 0.6)), "weather_ends": 600.0, "mates": mates}
    if kind == "banned":
        storm = rng.random() < 0.5
        weather = _weather(rng, 0.1) if storm else Weather()
        return {"bans": rng.randint(1, 4), "weather": weather, "weather_ends": 900.0}
    if kind == "restarts":
        moments = tuple(sorted(rng.uniform(0, 100) for _ in range(rng.randint(1, 2))))
        return {"restarts": moments, "weather": _weather(rng, 0.05), "weather_ends": 120.0}
    if kind == "tight":
        return {"budget": rng.choice((2.0, 5.0, 30.0, 70.0))}
    if kind == "day":
        per_day = max(1, schedule.tasks * schedule.calls // 2)
        return {"per_day": per_day, "begins": _DAY_SECONDS - rng.uniform(0, 1_200)}
    return {}


def _weather(rng: random.Random, share: float) -> Weather:
    """Faults for so large a share of requests, of a few kinds each time."""
    chosen = rng.sample(FAULTS, rng.randint(1, len(FAULTS)))
    weather = Weather(
        round_trip=rng.choice((0.01, 0.03, 0.2)),
        slow=rng.choice((0.0, 0.1, 0.5)),
        slow_seconds=rng.choice((1.0, 4.0, 20.0)),
    )
    return msgspec.structs.replace(weather, **dict.fromkeys(chosen, share / len(chosen)))


def _mates(rng: random.Random, schedule: Schedule) -> tuple[Mate, ...]:
    """Bursts that use up the account's windows while the program is at work."""
    minutes = 1 + schedule.tasks * schedule.calls / schedule.per_minute
    return tuple(
        Mate(
            begins=rng.uniform(0, 60 * minutes),
            calls=rng.randint(1, 3 * schedule.per_minute),
            pause=rng.choice((0.0, 0.1, 1.0)),
        )
        for _ in range(rng.randint(2, 6))
    )
