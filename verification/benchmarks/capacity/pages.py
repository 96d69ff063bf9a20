"""Measured, not simulated: a page of animals by every filter and order, in stores of different sizes.

The animals are as a store's are: the old ones sold, the newest available, and a category of the newest alone.
PostgreSQL's data lies in memory, SQLite's file in a temporary folder. Both ends of a connection share one
core: waking the other core costs as much as the page, and the system moves processes at will.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import uvloop

from petstore.core.clock import SystemClock
from petstore.core.pets import PetQuery, PetStatus
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.store import Store
from tests.support.backends import opened_store
from tests.support.postgres import PostgresServer
from verification.benchmarks.data import filling

POPULAR, NEWEST, RARE = 1, 2, 3
_FILL = """
INSERT INTO pets (name, category_id, status)
WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < {0})
SELECT 'Pet number ' || n,
    CASE WHEN n % 1000 = 7 THEN 3 WHEN n > {0} * 0.99 THEN 2 WHEN n % 3 = 0 THEN 1 ELSE 10 + n % 97 END,
    CASE WHEN n % 50 = 0 THEN 'pending' WHEN n <= {0} * 0.9 THEN 'sold' ELSE 'available' END
FROM counter
"""
_AVAILABLE, _SOLD = PetStatus.AVAILABLE, PetStatus.SOLD
_FILTERS: dict[str, tuple[PetStatus | None, int | None]] = {
    "none": (None, None),
    "available": (_AVAILABLE, None),
    "sold": (_SOLD, None),
    "popular category": (None, POPULAR),
    "category of the newest": (None, NEWEST),
    "rare category": (None, RARE),
    "popular category, available": (_AVAILABLE, POPULAR),
    "popular category, sold": (_SOLD, POPULAR),
    "rare category, sold": (_SOLD, RARE),
}
# Where in the walk the page is: as a share of the identifiers.
_PLACES = {"first": 0.0, "middle": 0.5, "deep": 0.95}
_ROUNDS, _CALLS = 9, 40


class Pages(msgspec.Struct):
    """Microseconds from call to page, the tenth percentile, for each size: a busy machine hardly moves it.

    `ratio`: of the greatest size to the least one where the page is as full; shorter pages cost less.
    """

    store: str
    filter: str
    order: str
    place: str
    microseconds: str
    ratio: float | str


@asynccontextmanager
async def _sqlite(folder: Path, animals: int) -> AsyncIterator[Store]:
    path = folder / f"{animals}.db"
    async with opened_store(f"sqlite:///{path}") as store:
        with filling(path) as connection:
            connection.execute(_FILL.format(animals))
        yield store


@asynccontextmanager
async def _postgres(server: PostgresServer, animals: int) -> AsyncIterator[Store]:
    maintenance = await asyncpg.connect(server.url())
    await maintenance.execute(f"CREATE DATABASE pages_{animals}")
    await maintenance.close()
    url = server.url(f"pages_{animals}")
    store = backend_for(url, postgres=PostgresOptions(connections=1)).open(SystemClock())
    connection = await asyncpg.connect(url)
    await connection.execute(_FILL.format(animals))
    await connection.execute("VACUUM ANALYZE pets")
    await connection.close()
    try:
        yield store
    finally:
        await store.close()


def _query(name: str, newest_first: bool, place: str, animals: int, call: int) -> PetQuery:
    status, category = _FILTERS[name]
    passed = int(animals * _PLACES[place])
    after = (animals - passed - call if newest_first else passed + call) if passed else 0
    return PetQuery(20, status, None, after, category, newest_first)


async def _compare(stores: dict[int, Store], kind: str, name: str, newest: bool, place: str) -> Pages:
    """The sizes in turn, so that a slow moment of the machine is everybody's."""
    calls: dict[int, list[float]] = {animals: [] for animals in stores}
    lengths = dict.fromkeys(stores, 0)
    for _ in range(_ROUNDS):
        for animals, store in stores.items():
            queries = [_query(name, newest, place, animals, call) for call in range(_CALLS)]
            for query in queries:
                began = time.perf_counter()
                page = await store.pets.page(query)
                calls[animals].append((time.perf_counter() - began) * 1e6)
            lengths[animals] = len(page.pets)
    taken = {animals: statistics.quantiles(times, n=10)[0] for animals, times in calls.items()}
    *less, most = stores
    alike = [animals for animals in less if lengths[animals] == lengths[most]]
    ratio = taken[most] / taken[alike[0]] if alike else "-"
    order = "newest first" if newest else "oldest first"
    shown = " / ".join(f"{value:.0f}" for value in taken.values())
    return Pages(kind, name, order, place, shown, ratio)


async def _measure(sizes: list[int]) -> dict[str, Any]:
    pages = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = ("shared_buffers=1GB", "max_wal_size=4GB", "jit=off", "autovacuum=off")
        server = stack.enter_context(PostgresServer(*settings).start())
        kinds: dict[str, dict[int, Store]] = {"SQLite": {}, "PostgreSQL": {}}
        for animals in sizes:
            opened = await stack.enter_async_context(_sqlite(folder, animals))
            kinds["SQLite"][animals] = opened
            kinds["PostgreSQL"][animals] = await stack.enter_async_context(_postgres(server, animals))
        for kind, stores in kinds.items():
            for name in _FILTERS:
                for newest in (False, True):
                    for place in _PLACES:
                        pages.append(await _compare(stores, kind, name, newest, place))
    shown = " / ".join(f"{animals:,}" for animals in sizes)
    worst = max(page.ratio for page in pages if isinstance(page.ratio, float))
    return {"animals": shown, "greatest ratio": worst, "pages": pages}


def measure(sizes: list[int]) -> dict[str, Any]:
    """The sizes ascending."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # inherited by the servers that it starts
    try:
        return uvloop.run(_measure(sorted(sizes)))
    finally:
        os.sched_setaffinity(0, cores)
