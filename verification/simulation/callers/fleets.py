"""Many fleets, one after another in one service."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from verification.simulation.callers.fleet import Fleet, Result
from verification.simulation.callers.origin import Origin, with_origin
from verification.simulation.virtual import VirtualLoop

_DAY_SECONDS = 86_400


def play(kinds: Iterable[str], seeds: Iterable[int]) -> dict[tuple[str, int], Result]:
    """Each kind from each seed."""

    async def work(service: Origin, loop: VirtualLoop) -> dict[tuple[str, int], Result]:
        results = {}
        for kind, seed in itertools.product(kinds, seeds):
            loop.leap_to((loop.time() // _DAY_SECONDS + 1) * _DAY_SECONDS + 3_600 + seed % 60 / 60)
            results[kind, seed] = await Fleet(kind, seed, service, loop).run()
        return results

    return with_origin(work)
