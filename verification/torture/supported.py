"""Campaigns whose rounds stand in tests/support, or in the simulation: the suite has their short forms."""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path

from petstore.core.limits.plans import FREE
from petstore.storage.backend import backend_for
from tests.support import powercut as cuts
from tests.support.clock import ManualClock
from tests.support.crashes import Crashes
from tests.support.imports import play as play_imports
from tests.support.journal import ACTOR
from tests.support.kills import play as play_kills
from tests.support.limits import play as play_limits
from tests.support.oldset import play as play_oldset
from tests.support.orders import KINDS as ORDER_KINDS
from tests.support.orders import play as play_orders
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.report import Report
from tests.support.restarts import Load
from tests.support.service import open_shop
from tests.support.sign_ins import replicas, storm
from tests.support.valkey import ValkeyServer, emptied_url
from verification.simulation.callers import checks, fleet


def powercut(report: Report, seed: int, seconds: float) -> None:
    """Power cuts: each round records a script and cuts it 500 times. Nothing acknowledged is lost."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        recording = cuts.record(folder, number, jobs=90)
        for cut in cuts.choose(recording, number, 500):
            faults = cuts.check(recording, cut, cuts.leave(recording, cut, folder / "cut"))
            report.counts["cuts"] += 1
            report.counts["acknowledged"] += sum(at <= cut.at for at, _, _ in recording.added)
            if faults:
                report.fault(f"{cut}: {'; '.join(faults[:5])}")


def limits(report: Report, seed: int, seconds: float) -> None:
    """Limits: eight processes on one account, killed in rounds of even seeds. No window admits one request
    too many or too few."""
    for number in report.rounds(seed, seconds):
        asyncio.run(play_limits(emptied_url(), number, report, 20, kills=number % 2 == 0))


def oldset(report: Report, seed: int, seconds: float) -> None:
    """Valkey with older data, an account's day in each round: no more is handed out again than the store
    could not know, no ban is forgotten."""
    with ValkeyServer().start() as server:
        for number in report.rounds(seed, seconds):
            asyncio.run(play_oldset(server, number, report))


def restarts(report: Report, seed: int, seconds: float) -> None:
    """Restarts: PostgreSQL is stopped at random moments under load, as in a crash or in order, and started
    again. Nothing that was acknowledged is lost, and nothing is there twice."""
    with PostgresServer(on_disk=True).start() as server:
        for number in report.rounds(seed, seconds):
            with fresh_database(server.url()) as url:
                asyncio.run(_restart(report, server, url, random.Random(number)))


async def _restart(report: Report, server: PostgresServer, url: str, chance: random.Random) -> None:
    store = backend_for(url).open(ManualClock())
    try:
        await store.accounts.add("shop", FREE, ACTOR)
        load = Load(store)
        async with load.going_on():
            for _ in range(10):
                how = chance.choice([signal.SIGQUIT, signal.SIGQUIT, signal.SIGINT])
                report.took("first success", await load.restart(server, how, chance.randrange(400)))
                report.counts["restarts"] += 1
    finally:
        await store.close()
    report.counts["acknowledged"] += len(load.acknowledged)
    for fault in load.faults(url)[:5]:
        report.fault(fault)


def backend(report: Report, seed: int, seconds: float) -> None:
    """Killed backends: a process of PostgreSQL is killed between a rollback and a commit, after which
    transaction ids are given out again. No list and no key is answered from before the commit. There is no
    chance in it."""
    with PostgresServer().start() as server:
        for _, folder in report.rounds_in_folders(seed, seconds):
            with fresh_database(server.url()) as url:
                asyncio.run(_kill_backends(report, server, url, folder))


async def _kill_backends(report: Report, server: PostgresServer, url: str, folder: Path) -> None:
    async with open_shop(folder, database_url=url) as shop:
        crashes = Crashes(server, url, shop)
        for _ in range(20):
            for fault in await crashes.round():
                report.fault(fault)
            report.counts["processes killed"] += 1


def orders(report: Report, seed: int, seconds: float) -> None:
    """Orders: 64 callers order the same animal at once, 100 animals, on a file with stores of commands beside
    its service, and through two replicas; they are killed in two of four rounds. Each animal goes to one
    caller."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        kind, kills = ORDER_KINDS[number % 2], number // 2 % 2 == 1
        play_orders(kind, folder, report, number, callers=64, animals=100, kills=kills)


def kills(report: Report, seed: int, seconds: float) -> None:
    """Kills: a server on a file is killed at random moments under load and started again, 20 times. What was
    answered is there under its identifier, what was not is there once or not at all, and the journal agrees.
    """
    for number, folder in report.rounds_in_folders(seed, seconds):
        play_kills(folder, report, number, 20)


def imports(report: Report, seed: int, seconds: float) -> None:
    """Imports: two stock lists are imported beside a server on a file or, every other seed, on PostgreSQL,
    and killed at random moments, 12 times each. All of a list is there or nothing of it."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        with ExitStack() as stack:
            url = stack.enter_context(fresh_database()) if number % 2 else f"sqlite:///{folder}/petstore.db"
            play_imports(url, folder, report, number, 12)


def signins(report: Report, seed: int, seconds: float) -> None:
    """Storms of wrong passwords: 10,000 at once at two replicas on PostgreSQL, and at a service on SQLite.
    The bound holds exactly, few hashes are computed, and a person with the right password gets in meanwhile.
    """
    for number, folder in report.rounds_in_folders(seed, seconds):
        with fresh_database() as url:
            asyncio.run(_storm(report, url, 2, number))
        asyncio.run(_storm(report, f"sqlite:///{folder}/petstore.db", 1, number))


async def _storm(report: Report, url: str, count: int, seed: int) -> None:
    async with replicas(url, ManualClock(), count) as applications:
        began = time.monotonic()
        seen = await storm(applications, 10_000, seed)
        report.took(f"{count} replicas", time.monotonic() - began)
    report.counts["wrong ones"] += seen.statuses.total()
    report.counts["compared"] += seen.statuses[403]
    report.counts["turned away as busy"] += seen.statuses[503]
    report.counts["right ones"] += len(seen.right)
    report.most("hashes in a storm", seen.hashes)
    for fault in seen.faults():
        report.fault(f"{count} replicas: {fault}")


def client(report: Report, seed: int, seconds: float) -> None:
    """Client: petstore_client through schedules of limits, bans, outages and lost answers, on a steered
    clock. It is never banned, doubles nothing, and finishes what the quota allows at the earliest moment.

    A service serves 100 schedules: each takes days of simulated time, and some interfaces end in 2030.
    """
    rounds = report.rounds(seed, seconds)
    while seeds := list(itertools.islice(rounds, 1)):
        checks.play(itertools.chain(seeds, itertools.islice(rounds, 99)), report)


def processes(report: Report, seed: int, seconds: float) -> None:
    """Processes: sixteen with one key on the Free plan, told nothing of each other, for ten windows, in
    twelve kinds of demand on a steered clock. None is banned, and together they use what the plan has."""
    shares: dict[str, list[float]] = {}
    for number in report.rounds(seed, seconds):
        for (kind, _), result in fleet.play(fleet.KINDS, [number]).items():
            for fault in result.faults:
                report.fault(f"{kind}: {fault}")
            report.counts["calls"] += result.made.calls
            report.counts["refusals"] += result.answers[429]
            report.most("strikes of 60", result.strikes)
            shares.setdefault(kind, []).append(result.used)
    for kind, used in shares.items():
        mean = sum(used) / len(used)
        report.note(f"{kind}: {min(used):.0%} to {max(used):.0%} of the quota used, mean {mean:.0%}")
