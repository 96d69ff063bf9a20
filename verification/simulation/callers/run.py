"""One schedule from beginning to end: the caller's program, its mates, and the outcome of each call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
from petstore_client import AsyncPetstore, PetstoreError
from petstore_client.runtime import Runtime

from tests.support.service import Answer
from verification.simulation.callers.network import Network, Sent
from verification.simulation.callers.origin import Origin
from verification.simulation.callers.schedule import Mate, Schedule
from verification.simulation.virtual import EPOCH_MS

ADDRESS = "http://localhost/v1"
_TRIES = 12  # more than a request meets faults and lost races


class Made(msgspec.Struct):
    """One call of the program, with its begin and end on the loop's clock."""

    kind: str
    name: str
    task: str
    began: float
    ended: float = 0.0
    error: PetstoreError | None = None
    quota_opens: float = 0.0  # when it failed: from then on the service would have taken a request


class Tried(msgspec.Struct):
    """A request that the service let through: whose, sent when, and in which window."""

    task: str
    asked: float
    sent: float
    window: int  # Unix milliseconds of its beginning


class Run:
    """A schedule in an origin that may have seen others: its accounts and animals are its own."""

    def __init__(self, schedule: Schedule, origin: Origin, loop: asyncio.AbstractEventLoop) -> None:
        self.schedule = schedule
        self.origin = origin
        self._loop = loop
        self._rng = random.Random(f"run {schedule.seed}")
        self.category = schedule.seed
        self.network = Network(origin, schedule.weather, random.Random(f"network {schedule.seed}"))
        self.network.on_answer = self._note
        self.made: list[Made] = []
        self.tried: list[Tried] = []
        self.strikes = 0
        self.level_before = 0
        self.key_id = self.account_id = 0
        self._animals: list[int] = []
        self.began = 0.0

    async def play(self) -> None:
        """All of it, until nothing is on its way."""
        schedule = self.schedule
        name = f"schedule-{schedule.seed}"
        key = await self.origin.open_account(name, schedule.per_minute, schedule.per_day)
        self.account_id, self.key_id = await self.origin.ids_of(key)
        mate = await self.origin.another_key(name) if schedule.mates else ""
        animals = [f"{name} animal {number}" for number in range(schedule.tasks * schedule.calls)]
        self._animals = await self.origin.add(animals, self.category)
        await self._earn_bans(key)
        self.level_before = self.origin.ban_of(self.key_id).level
        self.began = self._loop.time()
        loop_clock = self._loop.time
        wall = EPOCH_MS / 1_000 + schedule.skew
        runtime = Runtime(loop_clock, lambda: wall + loop_clock(), random.Random(schedule.seed).random)
        async with AsyncPetstore(
            ADDRESS, key, tries=_TRIES, seconds=schedule.budget, transport=self.network, runtime=runtime
        ) as client:
            around: list[Coroutine[Any, Any, None]] = [self._mate(one, mate) for one in schedule.mates]
            around += [self._restart(when) for when in schedule.restarts]
            others = [self._loop.create_task(one) for one in (*around, self._clear_up())]
            tasks = [
                self._loop.create_task(self._work(client, number), name=f"task {number}")
                for number in range(schedule.tasks)
            ]
            await asyncio.gather(*tasks, *others)
        await self.network.settle()

    def _note(self, sent: Sent, answer: Answer) -> None:
        """What the service decided about a request of the caller's."""
        self.strikes = max(self.strikes, self.origin.ban_of(self.key_id).strikes)
        if answer.status not in (401, 429):
            opened = self.origin.windows_of(self.account_id).openings.opened_ms[0]
            self.tried.append(Tried(sent.task, sent.asked, sent.at, opened))

    async def _earn_bans(self, key: str) -> None:
        """Somebody with the caller's key goes on after refusals, until the last ban has begun."""
        headers = [("authorization", f"Bearer {key}")]
        for number in range(self.schedule.bans):
            while self.origin.ban_of(self.key_id).level <= number:
                await self.origin.ask("GET", "/v1/pets?limit=1", headers, b"")
                await asyncio.sleep(0.1)
            if number + 1 < self.schedule.bans:
                await asyncio.sleep(self.origin.ban_of(self.key_id).banned_until_ms / 1_000 - self._unix())
        if self.schedule.bans:
            await asyncio.sleep(self._rng.uniform(0, 50))

    def _unix(self) -> float:
        return EPOCH_MS / 1_000 + self._loop.time()

    async def _mate(self, mate: Mate, key: str) -> None:
        await asyncio.sleep(mate.begins)
        for _ in range(mate.calls):
            await self.origin.ask("GET", "/v1/categories", [("authorization", f"Bearer {key}")], b"")
            await asyncio.sleep(mate.pause)

    async def _restart(self, when: float) -> None:
        await asyncio.sleep(when)
        await self.origin.restart(self._rng.uniform(0.0, 8.0))

    async def _clear_up(self) -> None:
        await asyncio.sleep(self.schedule.weather_ends)
        calm = self.schedule.weather.round_trip
        self.network.weather = type(self.schedule.weather)(round_trip=calm)

    async def _work(self, client: AsyncPetstore, number: int) -> None:
        """A task's calls, one after another."""
        for turn in range(self.schedule.calls):
            await self._call(client, number, turn)
            if self.schedule.rest:
                await asyncio.sleep(self._rng.uniform(0, self.schedule.rest))

    async def _call(self, client: AsyncPetstore, number: int, turn: int) -> None:
        """One operation, noted."""
        kind = self._rng.choice(("create", "create", "place", "place", "list", "get", "orders", "usage"))
        animal = self._animals[number * self.schedule.calls + turn]
        name = f"{kind} {number} {turn}"
        made = Made(kind, name, f"task {number}", self._loop.time())
        self.made.append(made)
        self.network.asked[made.task] = made.began
        if kind == "place":
            made.name = f"schedule-{self.schedule.seed} animal {number * self.schedule.calls + turn}"
        try:
            await self._operations(client, name, animal)[kind]()
        except PetstoreError as error:
            made.error = error
            made.quota_opens = self._quota_opens()
        made.ended = self._loop.time()

    def _operations(
        self, client: AsyncPetstore, name: str, animal: int
    ) -> dict[str, Callable[[], Awaitable[object]]]:
        async def walk() -> None:
            async for _ in client.pets.list(category_id=self.category, page_size=50):
                pass

        async def walk_orders() -> None:
            async for _ in client.orders.list():
                pass

        return {
            "create": lambda: client.pets.create(name=name, category_id=self.category),
            "place": lambda: client.orders.place(animal),
            "list": walk,
            "get": lambda: client.pets.get(animal),
            "orders": walk_orders,
            "usage": client.usage,
        }

    def _quota_opens(self) -> float:
        """The loop's time from which the service would let a request of this key pass."""
        used, ban = self.origin.windows_of(self.account_id), self.origin.ban_of(self.key_id)
        opens = ban.banned_until_ms / 1_000
        limits = (self.schedule.per_minute, self.schedule.per_day)
        for count, limit, reset_at in zip(used.used, limits, used.openings.reset_at, strict=True):
            if count >= limit:
                opens = max(opens, reset_at)
        return opens - EPOCH_MS / 1_000
