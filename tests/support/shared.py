"""Limiters that share a Valkey, as processes of the service would, with everything steered or watched."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import Limiter
from petstore.core.limits.decision import Decision
from petstore.core.versions import Version
from petstore.limiter.valkey.client import ValkeyClient, open_client
from petstore.limiter.valkey.fallback import FallbackLimiter
from petstore.limiter.valkey.limiter import ValkeyLimiter
from petstore.limiter.valkey.publisher import ValkeyPublisher
from petstore.limiter.valkey.scripts import Scripts
from tests.support.clock import ManualClock
from tests.support.counter_store import MemoryCounterStore
from tests.support.valkey import PATIENT, SteeredTime, steered_scripts
from tests.support.waiting import until

_WITH_OUTAGES_SECONDS = 0.5


@dataclass
class Watch:
    """Implements LimiterObserver: remembers what it was told."""

    reasons: list[str] = field(default_factory=list)
    ended: int = 0
    local: int = 0
    snapshots_only: int = 0
    round_trips: int = 0
    ahead: list[float] = field(default_factory=list)
    data_sets: list[bool] = field(default_factory=list)

    def outage_began(self, reason: str) -> None:
        self.reasons.append(reason)

    def outage_ended(self) -> None:
        self.ended += 1

    def decided_locally(self) -> None:
        self.local += 1

    def asked(self, seconds: float) -> None:
        self.round_trips += 1

    def another_data_set(self, *, known: bool) -> None:
        self.data_sets.append(known)

    def keeps_snapshots_only(self) -> None:
        self.snapshots_only += 1

    def clocks_differ(self, seconds: float) -> None:
        self.ahead.append(seconds)

    async def back(self) -> None:
        """Wait until the outages that began have ended."""
        await until(lambda: self.ended == len(self.reasons))


class Replica:
    """One process's limiter and publisher."""

    def __init__(
        self, client: ValkeyClient, limiter: Limiter, watch: Watch, time: SteeredTime | None
    ) -> None:
        self.client = client
        self.limiter = limiter
        self.watch = watch
        self.publisher = ValkeyPublisher(client)
        self._time = time

    async def ask(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        """One request, as the gate makes it."""
        self.tell_time()
        return await self.limiter.take(caller, cached_version)

    async def together(self, caller: Caller, version: Version, times: int) -> list[Decision | None]:
        """Requests in one turn of the event loop, as of a caller that is cached under a version. None:
        `take_later` did not find out."""
        self.tell_time()
        told: list[tuple[Caller, Decision | None]] = []
        all_told = asyncio.Event()

        def on_decision(*facts: Any) -> None:
            told.append(facts)
            if len(told) == times:
                all_told.set()

        for _ in range(times):
            if not self.limiter.take_later(caller, version, on_decision):
                on_decision(caller, None)
        await all_told.wait()
        assert all(whose is caller for whose, _ in told)
        return [decision for _, decision in told]

    def tell_time(self) -> None:
        """Let the server know where the clock stands, where that is steered."""
        if self._time is not None:
            self._time.send()

    async def take(self, caller: Caller) -> Decision:
        """One request whose caller was just read."""
        decision = await self.ask(caller)
        assert decision is not None
        return decision

    async def peek(self, caller: Caller) -> Decision:
        """What is left to it."""
        self.tell_time()
        decision = await self.limiter.peek(caller)
        assert decision is not None
        return decision

    async def use_up(self, caller: Caller, times: int) -> int:
        """How many of so many requests pass."""
        return sum([(await self.take(caller)).allowed for _ in range(times)])


class Replicas:
    """Opens them on one Valkey and one counter store; `steered` gives them the clock's time as the server's.

    They wait longer for an answer than in service, since the machine of a test may be busy.
    """

    def __init__(self, url: str, clock: ManualClock, *, steered: bool) -> None:
        self.url = url
        self.clock = clock
        self.counters = MemoryCounterStore()
        self.time = SteeredTime(url, clock) if steered else None
        self._opened: list[Replica] = []

    async def open(
        self, processes: int = 1, *, refuse: bool = False, policy: BanPolicy | None = None
    ) -> Replica:
        """One more process, of so many in all."""
        if self.time is not None:
            self.time.send()
        watch = Watch()
        scripts = steered_scripts() if self.time is not None else Scripts()
        patience = PATIENT if self.time is not None else _WITH_OUTAGES_SECONDS
        client = await open_client(self.url, patience, watch, scripts)
        policy = policy or BanPolicy()
        fallback = None if refuse else FallbackLimiter(self.clock, policy, processes)
        limiter = ValkeyLimiter(client, self.counters, self.clock, policy, fallback)
        replica = Replica(client, limiter, watch, self.time)
        self._opened.append(replica)
        return replica

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for replica in self._opened:
            await replica.client.close()
        self._opened.clear()
