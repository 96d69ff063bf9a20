"""A program that calls the service as its demand says; run as a module, a process of its own in real time."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time

import msgspec
from petstore_client import AsyncPetstore, PetstoreError

_AFTER_AN_ERROR_SECONDS = 1.0


class Demand(msgspec.Struct, frozen=True):
    """What a process wants: so many calls at once, and a pause of so many seconds after each."""

    tasks: int
    pause: float
    is_even: bool = True  # otherwise the pauses are random, with this mean


DEMANDS = {
    "closed": Demand(1, 0.0),
    "closed by 8": Demand(8, 0.0),
    "each 1 s": Demand(1, 1.0),
    "each 4 s": Demand(1, 4.0),
    "each 10 s": Demand(1, 10.0),
    "each 30 s": Demand(1, 30.0),
    "about 4 s": Demand(1, 4.0, is_even=False),
    "about 10 s": Demand(1, 10.0, is_even=False),
    "about 15 s": Demand(1, 15.0, is_even=False),
    "8 about 25 s": Demand(8, 25.0, is_even=False),
    "8 about 90 s": Demand(8, 90.0, is_even=False),
}


class Made(msgspec.Struct):
    """Calls that were made, and those of them that failed."""

    calls: int = 0
    failed: int = 0


async def work(client: AsyncPetstore, demand: Demand, rng: random.Random, made: Made) -> None:
    """Begin at a random moment, and go on until cancelled."""
    await asyncio.sleep(rng.uniform(0, max(demand.pause, 1.0)))
    await asyncio.gather(*(_task(client, demand, rng, made) for _ in range(demand.tasks)))


async def _task(client: AsyncPetstore, demand: Demand, rng: random.Random, made: Made) -> None:
    while True:
        made.calls += 1
        try:
            await client.categories.list()
        except PetstoreError:
            made.failed += 1
            await asyncio.sleep(_AFTER_AN_ERROR_SECONDS)
        await asyncio.sleep(demand.pause if demand.is_even else rng.expovariate(1 / demand.pause))


async def _run(address: str, demand: str, ends_at: float, key: str) -> Made:
    made = Made()
    async with AsyncPetstore(address, key) as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ends_at - time.time()):
                await work(client, DEMANDS[demand], random.Random(), made)
    return made


def main() -> None:
    """Arguments: address, demand, its end as a Unix time; by standard input, unseen, the key."""
    address, demand, ends_at = sys.argv[1:]
    made = asyncio.run(_run(address, demand, float(ends_at), sys.stdin.readline().strip()))
    sys.stdout.write(f"{made.calls} {made.failed}\n")


if __name__ == "__main__":
    main()
