"""Limiters on a Valkey that is saved, killed, put back and emptied at random moments.

A round is one account's day. It counts what was admitted; each time that data is lost, no more may be handed
out again than the counter store had not heard of.
"""

from __future__ import annotations

import asyncio
import random

from petstore.core.durations import DAY_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.usage import UsageChanges
from tests.support.clock import ManualClock
from tests.support.report import Report
from tests.support.shared import Replica, Replicas
from tests.support.valkey import ValkeyServer
from tests.support.waiting import until
from tests.support.windows import limits_of

_PROCESSES = 3
_STEPS = 14
_A_MINUTE = 1_000_000
_POLICY = BanPolicy(strikes_allowed=2, grace_ms=0)


class Round:
    """One account with a day's limit, and one with a key that misbehaves."""

    def __init__(self, server: ValkeyServer, seed: int, report: Report) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._report = report
        self._replicas = Replicas(server.url, ManualClock(), steered=False)
        self._processes: list[Replica] = []
        self._limit = self._random.randint(40, 400)
        self._caller = Caller(1, 1, limits_of(_A_MINUTE, self._limit))
        self._admitted = self._lost = 0
        self._counted = 0  # in Valkey, as the last answer told
        self._banned_until = 0

    async def run(self) -> None:
        """Carry out the history: from an empty server to a day that is used up."""
        self._server.client("FLUSHALL")
        self._server.client("SAVE")
        day = self._day()
        try:
            for _ in range(_PROCESSES):
                self._processes.append(await self._replicas.open(policy=_POLICY))
            seldom = (self._save, self._put_back, self._empty, self._ban, self._replace)
            for _ in range(_STEPS):
                await self._random.choice((*[self._burst] * 3, *seldom))()
            await self._use_up()
        finally:
            await self._replicas.close()
        if day == self._day():  # a round over midnight says nothing
            self._check()

    def _day(self) -> int:
        return int(self._server.client("TIME")[0]) * 1_000 // DAY_MS

    async def _take(self, process: Replica, times: int) -> None:
        for decision in await asyncio.gather(*(process.take(self._caller) for _ in range(times))):
            self._admitted += decision.allowed
            self._counted = self._limit - decision.windows[-1].remaining

    async def _burst(self) -> None:
        """Some requests; mostly the flusher comes round before the next step."""
        process = self._random.choice(self._processes)
        await self._take(process, self._random.randint(1, self._limit // 3))
        if self._random.random() < 0.8:
            await self._flush(process)

    async def _use_up(self) -> None:
        """More than there is, from all of them."""
        for process in self._processes:
            await self._take(process, self._limit + 1)

    async def _flush(self, process: Replica) -> None:
        await self._replicas.counters.merge(process.limiter.drain(), UsageChanges())

    async def _save(self) -> None:
        self._server.client("SAVE")

    def _note_loss(self) -> None:
        known = self._replicas.counters.state.windows.get(1)
        self._lost += max(0, self._counted - (0 if known is None else known.used[-1]))

    async def _put_back(self) -> None:
        """kill -9: it starts with its last snapshot."""
        self._note_loss()
        before = [(process, len(process.watch.reasons)) for process in self._processes]
        self._server.kill()
        for process, outages in before:
            await until(lambda process=process, outages=outages: len(process.watch.reasons) > outages)  # type: ignore[misc]
        self._server.start()
        for process in self._processes:
            await process.watch.back()
        self._report.counts["restarts with older data"] += 1
        await self._look_at_the_ban()

    async def _empty(self) -> None:
        self._note_loss()
        self._server.client("FLUSHALL")
        self._report.counts["times emptied"] += 1
        await self._look_at_the_ban()

    async def _replace(self) -> None:
        """A process dies with what it had not written, and another one starts."""
        place = self._random.randrange(len(self._processes))
        await self._processes[place].client.close()
        self._processes[place] = await self._replicas.open(policy=_POLICY)

    async def _ban(self) -> None:
        """The other account's key is banned, and the counter store hears of it."""
        process = self._random.choice(self._processes)
        while not (decision := await process.take(Caller(2, 2, limits_of(1, 1_000)))).banned:
            pass
        self._banned_until = decision.binding.reset_at
        await self._flush(process)

    async def _look_at_the_ban(self) -> None:
        """It ends when it was said to end, whoever is asked."""
        if not self._banned_until:
            return
        decision = await self._random.choice(self._processes).take(Caller(2, 2, limits_of(1, 1_000)))
        self._report.counts["bans looked up again"] += 1
        is_over = decision.now_ms >= self._banned_until * 1_000
        if not is_over and not (decision.banned and decision.binding.reset_at == self._banned_until):
            self._report.fault(f"the ban until {self._banned_until} was forgotten")

    def _check(self) -> None:
        self._report.counts["admitted"] += self._admitted
        twice = "admitted twice that no counter store knew"
        self._report.counts[twice] += max(0, self._admitted - self._limit)
        if not self._limit <= self._admitted <= self._limit + self._lost:
            self._report.fault(
                f"{self._admitted} admitted of {self._limit},"
                f" and the counter store did not know of {self._lost}"
            )


async def play(server: ValkeyServer, seed: int, report: Report) -> None:
    """One round."""
    await Round(server, seed, report).run()
