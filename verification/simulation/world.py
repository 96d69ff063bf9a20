"""One run: a fleet of processes, clients, writers, commands and outages, for some simulated minutes."""

from __future__ import annotations

import asyncio
import itertools
import random
from bisect import bisect
from collections.abc import Coroutine
from typing import Any

import msgspec

from petstore.core.limits.bans import BanPolicy
from petstore.core.versions import LEASE_SECONDS
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.observer import NoObserver
from petstore.limiter.valkey.publisher import CommandPublisher
from petstore.limiter.valkey.scripts import Scripts
from petstore.limiter.valkey.url import ValkeyUrl
from verification.benchmarks.capacity.model import hits, zipf
from verification.simulation.network import Delays
from verification.simulation.omissions import UNDIVIDED, Parts, left_out
from verification.simulation.process import TIMEOUT_SECONDS, Notes, Process
from verification.simulation.store import COSTS, SimulatedStore
from verification.simulation.valkey import SimulatedValkey
from verification.simulation.virtual import VirtualLoop

_SNAPSHOT_AGE = 10.0  # seconds
_COMMAND_LINE = "command-line"


class Outage(msgspec.Struct, frozen=True):
    """`what` is "kill" (reset, back with its data), "old" (back with those of ten seconds before), "empty"
    (back with nothing), "hang", or "cut": the first process alone loses its way to Valkey."""

    what: str
    begins: float
    lasts: float


class Setup(msgspec.Struct, frozen=True):
    """What a run is like. Rates are per second of simulated time, for the whole fleet."""

    seed: int = 1
    processes: int = 8
    seconds: float = 60.0
    requests: float = 400.0
    accounts: int = 1_000
    pages: int = 100
    skew: float = 1.0
    limited: bool = False
    writes: float = 0.0
    key_changes: float = 0.0
    deaths: float = 0.0
    round_trip: float = 0.3e-3
    stalls: float = 0.004
    stall: float = 0.02
    decision: float = 20e-6
    outages: tuple[Outage, ...] = ()
    left_out: str = ""


class Result(msgspec.Struct):
    """The outcome. `loads` are shares of one core, and calls for each request."""

    requests: int
    admitted: int
    refused: int
    failed: int
    local: int
    over: int
    under: int
    stale_pages: int
    stale_callers: int
    regressed: int
    oldest_seconds: float
    page_hits: float
    page_hits_by_formula: float
    caller_hits: float
    valkey_calls: float
    postgres_queries: float
    valkey_load: float
    postgres_load: float
    milliseconds: float
    minute_excess: float
    day_excess: float
    greatest: float


def _cumulative(count: int, skew: float) -> list[float]:
    sums = list(itertools.accumulate(zipf(count, skew)))
    sums[-1] = 1.0  # whatever rounding made of it
    return sums


class World:
    """Everything of one run."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._loop = VirtualLoop()
        self._rng = random.Random(setup.seed)
        # Each kind of event has its own numbers: another rate of one does not change the others.
        self._clients, self._writers = (
            random.Random(f"{setup.seed} {name}") for name in ("lists", "changes")
        )
        policy = BanPolicy()
        delays = Delays(random.Random(f"{setup.seed} store"), setup.round_trip, setup.stalls, setup.stall)
        near = Delays(random.Random(f"{setup.seed} valkey"), setup.round_trip, setup.stalls, setup.stall / 10)
        self._delays = delays
        self._store = SimulatedStore(self._loop, delays, random.Random(f"{setup.seed} disk"))
        self._store.add_keys(setup.accounts, limited=setup.limited)
        self._valkey = SimulatedValkey(self._loop, near, policy, setup.decision)
        self._policy = policy
        self._notes = Notes()
        self._accounts = _cumulative(setup.accounts, setup.skew)
        self._pages = _cumulative(setup.pages, setup.skew)
        self._fleet: list[Process] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def run(self) -> Result:
        """Run until the end, and a little longer for what is on its way."""
        asyncio.set_event_loop(self._loop)
        try:
            return self._loop.run_until_complete(self._live())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    async def _live(self) -> Result:
        setup = self._setup
        divided = setup.left_out != UNDIVIDED
        self._fleet = [
            Process(number, self._loop, self._store, self._policy, setup.processes if divided else 1)
            for number in range(setup.processes)
        ]
        parts = Parts(self._fleet, self._store, self._valkey, self._policy)
        with left_out(setup.left_out, parts):
            for process in self._fleet:
                await process.start(self._rng)
            self._loop.call_later(0.0, self._request)
            if setup.writes:
                self._loop.call_later(self._writers.expovariate(setup.writes), self._write)
            if setup.key_changes:
                self._loop.call_later(self._writers.expovariate(setup.key_changes), self._change_key)
            for outage in setup.outages:
                self._loop.call_at(max(outage.begins - _SNAPSHOT_AGE, 0.0), self._valkey.save)
                self._loop.call_at(outage.begins, self._begin, outage)
                self._loop.call_at(outage.begins + outage.lasts, self._end, outage)
            await self._loop.at(setup.seconds + 1.0)
            if self._failure is not None:
                raise self._failure
            result = self._result()
        await self._stop()
        return result

    async def _stop(self) -> None:
        """Nothing is left behind."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    def _is_over(self) -> bool:
        return self._loop.time() >= self._setup.seconds

    def _request(self) -> None:
        """One arrives at some process, and the next one is on its way."""
        if self._is_over():
            return
        rng = self._clients
        process = self._fleet[int(rng.random() * len(self._fleet))]
        place, page = bisect(self._accounts, rng.random()), bisect(self._pages, rng.random())
        self._spawn(process.answer(place, page, self._notes, self._delays))
        self._loop.call_later(rng.expovariate(self._setup.requests), self._request)

    def _write(self) -> None:
        if self._is_over():
            return
        rng = self._writers
        process = rng.choice(self._fleet)
        self._spawn(self._add(process, dies=rng.random() < self._setup.deaths))
        self._loop.call_later(rng.expovariate(self._setup.writes), self._write)

    async def _add(self, process: Process, *, dies: bool) -> None:
        """An animal; when its writer dies, its client tries again elsewhere with its Idempotency-Key."""
        await self._store.add(process.publisher, dies=dies)
        if dies:
            await asyncio.sleep(self._writers.uniform(0.2, 12.0))
            other = self._writers.choice(self._fleet)
            await self._store.add(other.publisher, replays=True)

    def _change_key(self) -> None:
        if self._is_over():
            return
        self._spawn(self._command(bisect(self._accounts, self._writers.random())))
        self._loop.call_later(self._writers.expovariate(self._setup.key_changes), self._change_key)

    async def _command(self, place: int) -> None:
        """A process of its own, on the command line."""
        client = ValkeyClient(ValkeyUrl(host=_COMMAND_LINE), Scripts(), NoObserver(), TIMEOUT_SECONDS)
        publisher = CommandPublisher(client, lambda _reason: asyncio.sleep(LEASE_SECONDS))
        await self._store.change_key(publisher, place)
        await publisher.close()

    def _begin(self, outage: Outage) -> None:
        valkey = self._valkey
        if outage.what == "hang":
            valkey.hangs = True
        elif outage.what == "cut":
            valkey.cut_off.add(self._fleet[0].host)
        else:
            valkey.kill()

    def _end(self, outage: Outage) -> None:
        valkey = self._valkey
        if outage.what == "empty":
            valkey.empty()
        elif outage.what == "old":
            valkey.load()
        valkey.hangs = valkey.is_down = False
        valkey.cut_off.clear()

    def _result(self) -> Result:
        notes, store, valkey, seconds = self._notes, self._store, self._valkey, self._setup.seconds
        admissions, requests = notes.admissions, max(notes.requests, 1)
        over, under = admissions.over_and_under()
        outages = [(outage.begins, outage.lasts) for outage in self._setup.outages]
        minute, day = admissions.worst_excess(self._setup.processes, outages)
        queries = store.pages + store.callers + store.recalled + store.commits + store.batches
        return Result(
            requests=notes.requests,
            admitted=admissions.admitted,
            refused=admissions.refused,
            failed=notes.failed,
            local=admissions.local,
            over=over,
            under=under,
            stale_pages=notes.pages.acknowledged,
            stale_callers=notes.callers.acknowledged,
            regressed=notes.pages.shown + notes.callers.shown,
            oldest_seconds=max(notes.pages.worst, notes.callers.worst),
            page_hits=1 - store.pages / max(notes.lists, 1),
            page_hits_by_formula=self._formula(),
            caller_hits=1 - store.callers / requests,
            valkey_calls=valkey.calls / requests,
            postgres_queries=queries / requests,
            valkey_load=valkey.busy_seconds / seconds,
            postgres_load=store.busy_seconds / seconds,
            milliseconds=1_000 * notes.seconds / requests,
            minute_excess=minute,
            day_excess=day,
            greatest=admissions.greatest() if self._setup.limited else 0.0,
        )

    def _formula(self) -> float:
        """The share of pages that are kept, by arithmetic."""
        setup = self._setup
        # While it writes, a writer's mark stands for a round trip, the statement and its commit.
        marked = 2.5 * setup.round_trip + COSTS.write + COSTS.fsync
        shares = zipf(setup.pages, setup.skew)
        return hits(shares, setup.requests / setup.processes, setup.writes, marked)
