"""A PostgreSQL for the simulation: what is committed when, what a query saw, and how busy it was.

A query's snapshot is of the moment at which it starts. The catalogue is one number, how many changes were
committed; a page is one animal with that number. A caller's version is in its term, far in the future.
"""

from __future__ import annotations

import random
from bisect import bisect_left

import msgspec

from petstore.core.digests import digest
from petstore.core.keys import Caller, mint
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import QUOTA_MAX, STANDARD_PLANS, Plan
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows, later_windows
from petstore.core.pets import Pet, PetPage, PetQuery, PetStatus
from petstore.core.versions import Publisher
from verification.simulation.network import Delays
from verification.simulation.virtual import VirtualLoop

_FAR_MS = 4_000_000_000_000
# The last one's day is short, so that it is used up within a run.
_PLANS = [STANDARD_PLANS["free"]] * 7 + [STANDARD_PLANS["pro"], STANDARD_PLANS["business"]]
_PLANS.append(Plan("enterprise", (60, 90)))
_UNLIMITED = Plan("enterprise", (QUOTA_MAX, QUOTA_MAX))


class Costs(msgspec.Struct, frozen=True):
    """Processor seconds of PostgreSQL, the time a commit's fsync takes, and how many cores there are."""

    page: float = 120e-6
    caller: float = 60e-6
    write: float = 100e-6
    batch_row: float = 10e-6
    fsync: float = 1.5e-3
    cores: int = 4


COSTS = Costs()


class Truth:
    """What was acknowledged, and when; what some answer has shown. Numbers only grow."""

    def __init__(self) -> None:
        self.committed = self.acknowledged = self.shown = 0
        self._times: list[float] = []
        self._numbers: list[int] = []

    def acknowledge(self, number: int, now: float) -> None:
        """Somebody was told that this change is made."""
        if number > self.acknowledged:
            self.acknowledged = number
            self._times.append(now)
            self._numbers.append(number)

    def age(self, number: int, now: float) -> float:
        """Seconds since something later was acknowledged; 0.0 when nothing was."""
        place = bisect_left(self._numbers, number + 1)
        return max(now - self._times[place], 0.0) if place < len(self._times) else 0.0


class SimulatedStore:
    """Implements what the gate, the operations and the flusher need of a store."""

    def __init__(self, loop: VirtualLoop, delays: Delays, rng: random.Random) -> None:
        self._loop = loop
        self._delays = delays
        self._rng = rng
        self._free_at = [0.0] * COSTS.cores
        self.tokens: list[bytes] = []
        self._callers: dict[bytes, Caller] = {}
        self._place: dict[bytes, int] = {}
        self.catalogue = Truth()
        self.keys: list[Truth] = []
        self._windows: dict[int, AccountWindows] = {}
        self._bans: dict[int, BanState] = {}
        self.loads = True
        self.late_answer = True
        self.pages = self.callers = self.commits = self.batches = self.recalled = 0
        self.busy_seconds = 0.0
        self.dead: list[object] = []  # writers that never came back: kept, so that nothing ends them

    def add_keys(self, accounts: int, *, limited: bool) -> None:
        """One key for each account; seven of ten are Free."""
        for number in range(accounts):
            token = mint("test").encode("ascii")
            plan = self._rng.choice(_PLANS) if limited else _UNLIMITED
            caller = Caller(number + 1, number + 1, plan.limits, expires_at_ms=_FAR_MS)
            self.tokens.append(token)
            self._callers[digest(token)] = caller
            self._place[digest(token)] = number
            self.keys.append(Truth())

    def change_of(self, caller: Caller) -> int:
        """The change of its key that a caller shows."""
        assert caller.expires_at_ms is not None
        return caller.expires_at_ms - _FAR_MS

    async def _run(self, seconds: float) -> None:
        """Work until a core of the server has a result; a snapshot is taken at the start of this work."""
        arrival = self._loop.time() + self._delays.one_way()
        core = min(range(len(self._free_at)), key=self._free_at.__getitem__)
        began = max(arrival, self._free_at[core])
        self._free_at[core] = began + seconds
        self.busy_seconds += seconds
        await self._loop.at(began)

    async def _answer(self, seconds: float) -> None:
        await self._loop.at(self._loop.time() + seconds + self._delays.one_way())

    async def public_page(self, query: PetQuery) -> PetPage:
        """Return a page as transactions.pets.Pets does for lists."""
        self.pages += 1
        await self._run(COSTS.page)
        pet = Pet(self.catalogue.committed + 1, "", 1, PetStatus.AVAILABLE)
        await self._answer(COSTS.page)
        return PetPage([pet], False)

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        """Implements keys.KeyRepository, as far as the gate goes."""
        self.callers += 1
        await self._run(COSTS.caller)
        caller = self._callers.get(key_digest)
        await self._answer(COSTS.caller)
        return caller

    async def _commit(self) -> None:
        """Work until the change is visible: executed, and on the disk."""
        self.commits += 1
        await self._run(COSTS.write)
        await self._loop.at(self._loop.time() + COSTS.fsync * (0.5 + self._rng.expovariate(2.0)))

    async def add(self, publisher: Publisher, *, dies: bool = False, replays: bool = False) -> int:
        """An animal, as storage/postgres adds it; `dies`: the writer is gone after its commit.

        A replayed addition finds its animal and acknowledges it again.
        """
        announced = publisher.changing(catalogue=True)
        await announced.__aenter__()
        if not replays:
            await self._commit()
            self.catalogue.committed += 1
        else:
            await self._run(COSTS.caller)
        number = self.catalogue.committed
        if dies:
            self.dead.append(announced)
            return number
        await self._answer(0.0)
        await self._complete(announced, self.catalogue, number)
        return number

    async def change_key(self, publisher: Publisher, place: int) -> None:
        """Something about a key, as a command does it."""
        token = digest(self.tokens[place])
        truth = self.keys[place]
        announced = publisher.changing(keyring=True)
        await announced.__aenter__()
        await self._commit()
        truth.committed += 1
        number = truth.committed
        self._callers[token] = msgspec.structs.replace(self._callers[token], expires_at_ms=_FAR_MS + number)
        await self._answer(0.0)
        await self._complete(announced, truth, number)

    async def _complete(self, announced: object, truth: Truth, number: int) -> None:
        if not self.late_answer:  # a step left out: the caller is answered before the version moves
            truth.acknowledge(number, self._loop.time())
        await announced.__aexit__(None, None, None)  # type: ignore[attr-defined]
        truth.acknowledge(number, self._loop.time())

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        """Implements counters.MergingCounterStore: of windows the later ones, of bans the later ban."""
        self.batches += 1
        rows = len(state.windows) + len(state.bans) + len(usage.daily) + len(usage.last_used_ms)
        await self._run(COSTS.write + rows * COSTS.batch_row)
        await self._loop.at(self._loop.time() + COSTS.fsync)
        for account, used in state.windows.items():
            self._windows[account] = later_windows(used, self._windows.get(account, used))
        for key, ban in state.bans.items():
            known = self._bans.get(key)
            if known is None or ban.banned_from_ms >= known.banned_from_ms:
                self._bans[key] = ban
        await self._answer(0.0)

    async def load_for(
        self, now_ms: int, account_id: int, key_id: int
    ) -> tuple[AccountWindows | None, BanState | None]:
        """Implements counters.MergingCounterStore."""
        self.recalled += 1
        await self._run(COSTS.caller)
        kept = (self._windows.get(account_id), self._bans.get(key_id)) if self.loads else (None, None)
        await self._answer(COSTS.caller)
        return kept
