"""Many fleets, one after another in one service."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.support.machine import memory
from verification.simulation.callers.fleet import Fleet, Result
from verification.simulation.callers.origin import origin
from verification.simulation.virtual import VirtualLoop

_DAY_SECONDS = 86_400


def play(kinds: Iterable[str], seeds: Iterable[int]) -> dict[tuple[str, int], Result]:
    """Each kind from each seed."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        with tempfile.TemporaryDirectory(dir=memory()) as folder:
            return loop.run_until_complete(_play(kinds, list(seeds), loop, Path(folder)))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _play(
    kinds: Iterable[str], seeds: list[int], loop: VirtualLoop, folder: Path
) -> dict[tuple[str, int], Result]:
    results = {}
    async with origin(folder, loop) as service:
        for kind in kinds:
            for seed in seeds:
                loop.leap_to((loop.time() // _DAY_SECONDS + 1) * _DAY_SECONDS + 3_600 + seed % 60 / 60)
                results[kind, seed] = await Fleet(kind, seed, service, loop).run()
    return results
