"""Sixteen processes with one key on the Free plan, each with a client that knows nothing of the others."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Iterable

import msgspec
from petstore_client import AsyncPetstore
from petstore_client.runtime import Runtime

from petstore.core.limits.plans import FREE
from tests.support.service import Answer
from verification.simulation.callers.network import Network, Sent, Weather
from verification.simulation.callers.origin import Origin, with_origin
from verification.simulation.callers.program import DEMANDS, Demand, Made, work
from verification.simulation.virtual import EPOCH_MS, VirtualLoop

PROCESSES, WINDOWS = 16, 10
LEAST_USED = 0.8  # of the quota, in each run; on average 90 %
ADDRESS = "http://localhost/v1"
_SECONDS = 60.0 * WINDOWS
_DAY_SECONDS = 86_400


MIXED = "mixed"
KINDS = (*DEMANDS, MIXED)
_CALM = Weather()
_UNEVEN = Weather(round_trip=0.1, slow=0.03, slow_seconds=4.0)


class Result(msgspec.Struct):
    """The outcome: by status, and the key's record."""

    answers: Counter[int]
    bans: int
    strikes: int
    made: Made
    wanted: float  # calls that the processes would have made without limits

    @property
    def used(self) -> float:
        """The share of the quota of all windows that was used."""
        return self.answers[200] / (FREE.limits[0] * WINDOWS)

    @property
    def faults(self) -> list[str]:
        """A ban; quota that is left although more was wanted; calls that failed although it sufficed."""
        quota = FREE.limits[0] * WINDOWS
        faults = [f"the key was banned {self.bans} times"] if self.bans else []
        if self.wanted > 1.3 * quota and self.used < LEAST_USED:
            faults.append(f"only {self.used:.0%} of the quota was used")
        if self.wanted < 0.7 * quota and self.made.failed:
            faults.append(f"{self.made.failed} of {self.made.calls} calls failed although the quota sufficed")
        return faults


class Fleet:
    """One run of a kind, from a seed."""

    def __init__(self, kind: str, seed: int, origin: Origin, loop: VirtualLoop) -> None:
        self._name = f"{kind} {seed}".replace(" ", "-")
        self._rng = random.Random(self._name)
        self._demands = [
            DEMANDS[kind if kind in DEMANDS else self._rng.choice(list(DEMANDS))] for _ in range(PROCESSES)
        ]
        self._weather = _UNEVEN if seed % 2 else _CALM
        self._origin = origin
        self._loop = loop
        self._networks: list[Network] = []
        self._result = Result(Counter(), 0, 0, Made(), 0.0)
        self._key_id = 0

    async def run(self) -> Result:
        """Ten windows."""
        key = await self._origin.open_account(self._name, *FREE.limits)
        _, self._key_id = await self._origin.ids_of(key)
        ends = self._loop.time() + _SECONDS
        processes = [
            self._loop.create_task(self._process(number, demand, key))
            for number, demand in enumerate(self._demands)
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(ends):
                await asyncio.gather(*processes)
        for network in self._networks:
            await network.settle()
        self._result.bans = self._origin.ban_of(self._key_id).level
        self._result.wanted = sum(_SECONDS * each.tasks / (each.pause + 0.1) for each in self._demands)
        return self._result

    def _note(self, sent: Sent, answer: Answer) -> None:
        self._result.answers[answer.status] += 1
        self._result.strikes = max(self._result.strikes, self._origin.ban_of(self._key_id).strikes)

    async def _process(self, number: int, demand: Demand, key: str) -> None:
        """A program of its own: a limiter, a wall clock and connections that it shares with nobody."""
        own = random.Random(f"{self._name} {number}")
        network = Network(self._origin, self._weather, own)
        network.on_answer = self._note
        self._networks.append(network)
        clock = self._loop.time
        wall = EPOCH_MS / 1_000 + own.uniform(-5, 5)
        runtime = Runtime(clock, lambda: wall + clock(), own.random)
        async with AsyncPetstore(ADDRESS, key, transport=network, runtime=runtime) as client:
            await work(client, demand, own, self._result.made)


def play(kinds: Iterable[str], seeds: Iterable[int]) -> dict[tuple[str, int], Result]:
    """Each kind from each seed, one after another in one service."""

    async def work(service: Origin, loop: VirtualLoop) -> dict[tuple[str, int], Result]:
        results = {}
        for kind, seed in itertools.product(kinds, seeds):
            loop.leap_to((loop.time() // _DAY_SECONDS + 1) * _DAY_SECONDS + 3_600 + seed % 60 / 60)
            results[kind, seed] = await Fleet(kind, seed, service, loop).run()
        return results

    return with_origin(work)
