"""Many processes that want far more than one account has, against one Valkey: a campaign, and its workers.

The time is the campaign's: the scripts read it from a key. A worker reports each request that was admitted
before it asks for the next, so that what a killed one leaves in doubt is what was on its way, and no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

from petstore.core.durations import DAY_MS
from petstore.core.errors import LimiterUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.limiter.valkey.client import open_client
from petstore.limiter.valkey.limiter import ValkeyLimiter
from tests.support.clock import ManualClock
from tests.support.counter_store import MemoryCounterStore
from tests.support.report import Report
from tests.support.valkey import PATIENT, Client, FailOnOutage, SteeredTime, steered_scripts
from tests.support.windows import limits_of

CONCURRENCY = 16
_ROOT = Path(__file__).resolve().parents[2]
_NO_BANS = BanPolicy(strikes_allowed=10**9)


class Worker:
    """A process with a limiter; it is told how often to ask, and prints the answers line by line."""

    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._number = number
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.support.limits", self._url, str(self._number)),
            cwd=_ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"},
        )

    async def ask(self, times: int, per_minute: int, per_day: int, kill_after: int | None) -> list[str]:
        """The lines of so many requests; cut off after some of them when it is to be killed meanwhile."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{times} {per_minute} {per_day}\n".encode())
        lines: list[str] = []
        killed = False
        while line := (await self._process.stdout.readline()).decode():
            if line != "done\n":
                lines.append(line.strip())
            elif not killed:
                return lines
            if len(lines) == kill_after and not killed:
                self._process.send_signal(signal.SIGKILL)
                killed = True
        await self._process.wait()
        if not killed:
            raise AssertionError(f"worker {self._number} has ended by itself: {lines[-3:]}")
        await self.start()
        return lines

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


class Campaign:
    """Windows one after another, each with more demand than it has room for."""

    def __init__(self, url: str, seed: int, report: Report, processes: int, *, kills: bool) -> None:
        self.report = report
        self._url = url
        self._random = random.Random(seed)
        self._kills = kills
        self._clock = ManualClock()
        self._time = SteeredTime(url, self._clock)
        self._workers = [Worker(url, number) for number in range(1, processes + 1)]
        self._used_on_day = 0

    async def start(self) -> None:
        self._time.send()
        await asyncio.gather(*(worker.start() for worker in self._workers))

    async def stop(self) -> None:
        await asyncio.gather(*(worker.stop() for worker in self._workers))

    async def window(self) -> None:
        """One minute window, in one burst or in several at different moments of it; then on to the next."""
        draw = self._random
        per_minute = draw.randint(20, 200)
        per_day = self._used_on_day + draw.choice((per_minute // 2, per_minute, 10_000))
        room, kills = min(per_minute, per_day - self._used_on_day), self.report.counts["kills"]
        lines: list[str] = []
        for burst in range(draw.randint(1, 3)):
            if burst:
                self._clock.ms += draw.randint(1, 19_000)
            self._time.send()
            lines += await self._burst(per_minute, per_day)
        self._check(lines, room, self.report.counts["kills"] - kills)
        self._used_on_day += room
        self.report.counts["windows"] += 1
        self._clock.ms += draw.choice((60_000, 60_001, 75_300))
        if draw.random() < 0.2:
            self._clock.ms += DAY_MS - self._clock.ms % DAY_MS + draw.randint(0, 59_000)
            self._used_on_day = 0

    async def _burst(self, per_minute: int, per_day: int) -> list[str]:
        """Every worker asks more than its part of what is there; perhaps one of them dies at it."""
        times = 2 * per_minute // len(self._workers) + CONCURRENCY
        victim = self._random.choice(self._workers) if self._kills and self._random.random() < 0.5 else None
        after = self._random.randint(1, times)
        if victim is not None:
            self.report.counts["kills"] += 1
        asked = [
            worker.ask(times, per_minute, per_day, after if worker is victim else None)
            for worker in self._workers
        ]
        lines = [line for told in await asyncio.gather(*asked) for line in told]
        self.report.counts["decisions"] += len(lines)
        return lines

    def _check(self, lines: list[str], room: int, kills: int) -> None:
        """Exactly the room was admitted, each with a Remaining of its own; a kill leaves a few in doubt."""
        self.report.counts["windows without a kill"] += not kills
        passed = Counter(line for line in lines if not line.startswith("refused"))
        admitted = sum(passed.values())
        self.report.counts["admitted"] += admitted
        counted = int(Client(self._url)("GET", "{petstore}:windows:1").split()[1])
        self.report.counts["in doubt"] += room - admitted
        if counted != room or not room - kills * CONCURRENCY <= admitted <= room:
            self.report.fault(f"room for {room}, {admitted} admitted, {counted} counted")
        twice = [line for line, times in passed.items() if times > 1]
        if twice:
            self.report.fault(f"told to two requests: {twice}")


async def play(url: str, seed: int, report: Report, windows: int, *, kills: bool, processes: int = 8) -> None:
    """Play `windows` windows from one seed."""
    campaign = Campaign(url, seed, report, processes, kills=kills)
    await campaign.start()
    try:
        for _ in range(windows):
            await campaign.window()
    finally:
        await campaign.stop()


async def work(url: str, number: int) -> None:
    """A worker: for every line of standard input so many requests at a time, one line for each answer."""
    loop = asyncio.get_running_loop()
    client = await open_client(url, PATIENT, FailOnOutage(), steered_scripts())
    limiter = ValkeyLimiter(client, MemoryCounterStore(), ManualClock(), _NO_BANS)
    while order := await loop.run_in_executor(None, sys.stdin.readline):
        times, per_minute, per_day = map(int, order.split())
        left = iter(range(times))
        caller = Caller(number, 1, limits_of(per_minute, per_day))

        async def ask(left: object = left, caller: Caller = caller) -> None:
            for _ in left:  # type: ignore[attr-defined]
                try:
                    decision = await limiter.take(caller)
                except LimiterUnavailable:
                    continue
                assert decision is not None
                minute, *_, day = decision.windows
                told = f"{minute.reset_at} {minute.remaining} {day.reset_at} {day.remaining}"
                os.write(1, f"{told if decision.allowed else 'refused'}\n".encode())

        await asyncio.gather(*(ask() for _ in range(CONCURRENCY)))
        os.write(1, b"done\n")
    await client.close()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
