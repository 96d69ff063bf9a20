"""Measured, not simulated: processor time of PostgreSQL, and of a process of ours, for each of the service's
statements.

Statements go one after another over one connection, so none shares its round trip: the dearest case. The data
lies in memory: what a commit waits for on a disk is yours to measure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import uvloop

from petstore.core.clock import SystemClock
from petstore.core.digests import digest
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.limits.windows import AccountWindows
from petstore.core.pets import NewPet, PetQuery
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from tests.support.postgres import PostgresServer

_ANIMALS = 100_000
_BATCH = 1_000


class Cost(msgspec.Struct):
    """Microseconds of a processor: of the server's process, and of ours; and from call to answer."""

    statement: str
    server: float
    ours: float
    elapsed: float


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _cost(pid: int, name: str, count: int, call: Callable[[int], Awaitable[Any]]) -> Cost:
    for number in range(20):
        await call(-1 - number)
    server, ours, began = _processor_seconds(pid), time.process_time(), time.perf_counter()
    for number in range(count):
        await call(number)
    each = 1e6 / count
    return Cost(
        name,
        (_processor_seconds(pid) - server) * each,
        (time.process_time() - ours) * each,
        (time.perf_counter() - began) * each,
    )


def _batch(number: int) -> tuple[LimiterState, UsageChanges]:
    """What a process saves when so many accounts asked within a second."""
    accounts = range(1, _BATCH + 1)
    used = AccountWindows.of(1_798_761_600_000 + 60_000 * (number + 100), 10, 20_819, number + 100)
    return (
        LimiterState(dict.fromkeys(accounts, used)),
        UsageChanges(
            {(account, 20_819): DailyUsage(20_819, 10) for account in accounts},
            dict.fromkeys(accounts, 1_798_761_600_000 + number),
        ),
    )


async def _measure(url: str, count: int) -> dict[str, Any]:
    store = backend_for(url, postgres=PostgresOptions(connections=1)).open(SystemClock())
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "INSERT INTO pets (name, category_id, status) SELECT 'Pet number ' || n, n % 97, 'available'"
            f" FROM generate_series(1, {_ANIMALS}) n"
        )
        await connection.execute("VACUUM ANALYZE pets")
        await store.accounts.add("customer", FREE, "bench")
        key = digest((await store.keys.issue("customer", "test", "bench")).secret.encode("ascii"))
        pid = await connection.fetchval(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'petstore' LIMIT 1"
        )
        new = NewPet("Pet number 1", 1)
        counters = store.merging_counters
        assert counters is not None

        def page(number: int) -> Awaitable[Any]:
            return store.pets.page(PetQuery(after_id=abs(number) * 37 % _ANIMALS))

        batches = await _cost(
            pid,
            f"batch of {_BATCH:,} accounts",
            count // 200,
            lambda number: counters.merge(*_batch(number)),
        )
        costs = [
            await _cost(pid, "page of 20", count, page),
            await _cost(pid, "caller", count, lambda _: store.keys.find_caller(key)),
            await _cost(
                pid, "counters recalled", count, lambda _: counters.load_for(1_798_761_600_000, 1, 1)
            ),
            await _cost(pid, "addition", count, lambda _: store.pets.add(new, "bench")),
            batches,
        ]
        return {"server": await connection.fetchval("SHOW server_version"), "costs": costs}
    finally:
        await connection.close()
        await store.close()


def measure(count: int = 10_000) -> dict[str, Any]:
    """Each statement so often."""
    with PostgresServer("jit=off").start() as server:
        return uvloop.run(_measure(server.url(), count))
