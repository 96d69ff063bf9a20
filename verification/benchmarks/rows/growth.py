"""What growth costs: animals from a thousand to ten millions, first and last page, many keys."""

from __future__ import annotations

import itertools
import random
from contextlib import ExitStack

from petstore.api.pets import bind_cursor
from petstore.api.pipeline.paging import write_cursor
from petstore.core.pets import PetQuery, PetStatus
from verification.benchmarks import servers
from verification.benchmarks.data import database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, rate, run
from verification.benchmarks.report import Row, over_one
from verification.benchmarks.rows.reads import LIST

SIZES = (1_000, 100_000, 1_000_000)
FULL_SIZES = (*SIZES, 10_000_000)
KEYS = (10, 1_000, 100_000)  # each request of a connection has another one
_PAGES = 200_000


def _pages(animals: int, key: str, *, last: bool) -> tuple[str, ...]:
    """Pages near the beginning or the end. The ampersands make each query string another one, so that none is
    answered from a kept page and the store is asked every time."""
    chosen = random.Random(animals)
    window = range(1, 900) if not last else range(animals - 900, animals - 30)
    bound = bind_cursor(PetQuery(status=PetStatus.AVAILABLE))
    gaps = itertools.cycle(itertools.product(*[[n * "&" for n in range(1, 7)]] * 3))
    return tuple(
        f"/v1/pets?limit=20{a}status=available{b}cursor={write_cursor(chosen.choice(window), bound)}{c} {key}"
        for a, b, c in itertools.islice(gaps, _PAGES)
    )


def measure_animals(plan: Plan, *, full: bool) -> list[Row]:
    """The page queries by size; the ratio is to the first page of 1,000 animals."""
    sizes = FULL_SIZES if full else SIZES
    with ExitStack() as stack:
        measurements = {}
        for animals in sizes:
            path, (key, *_) = database(animals)
            settings = {"console": "off"}  # its index of ten millions would be made beside what is measured
            shop = stack.enter_context(servers.petstore(f"animals-{animals}", path, settings=settings))
            for place in ("first", "last"):
                load = Load(_pages(animals, key, last=place == "last"))
                measurements[f"{place} page of {animals:,}"] = rate(load, shop.port, plan.seconds)
        taken = medians(measurements, plan)
    base = "first page of 1,000"
    return over_one("growth", taken, base, base, dict.fromkeys(taken, ">= 0.9"))


def measure_keys(plan: Plan) -> list[Row]:
    """Requests by so many keys in turn, all of them known to the server before it is measured."""
    with ExitStack() as stack:
        measurements = {}
        for count in KEYS:
            path, keys = database(1_000, count)
            shop = stack.enter_context(servers.petstore(f"keys-{count}", path))
            load = Load(tuple(f"{LIST} {key}" for key in keys))
            measurements[f"{count:,} keys"] = rate(load, shop.port, plan.seconds)
            run(load, shop.port, 3 + 2 * (count > 10_000))
        taken = medians(measurements, plan)
    base = f"{KEYS[0]} keys"
    return over_one("keys", taken, base, base, dict.fromkeys(taken, ">= 0.95"))
