"""CPU of a page of 20 through the pool of storage/postgres and through asyncpg's, in one interleaved run.

    .venv/bin/python -m verification.benchmarks.micro.pool

asyncpg's pool gets a reset that sends nothing. Each round gives one ratio; the result is their median.
Statements are prepared, the server is on a socket, the loop is uvloop. The server's CPU is not counted.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import uvloop

from petstore.core.clock import SystemClock
from petstore.core.errors import StoreUnavailable
from petstore.core.pets import PageQuery, PetStatus
from petstore.core.versions import NoPublisher
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.connection import connect
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import may_repeat, translate
from petstore.storage.postgres.pets import PostgresPets
from tests.support.postgres import fresh_database, run

ANIMALS = (
    "INSERT INTO pets (name, category_id, status) SELECT 'pet', g,"
    " (ARRAY['available', 'pending', 'sold'])[1 + g % 3] FROM generate_series(1, 1000) g; ANALYZE pets"
)
# Of the newest first, since others share their queries.
PAGE = PageQuery(status=PetStatus.AVAILABLE, after_id=930, newest_first=True)
READERS = (1, 10, 64)
PAGES = 640
OPTIONS = PostgresOptions(connections=10)
CLOCK = SystemClock()
Read = Callable[[], Awaitable[object]]


class DriverPoolDatabase(Database):
    """Reads through asyncpg's pool, with the same bounds on the number of waiters and on their time."""

    def __init__(self, url: str) -> None:
        super().__init__(url, CLOCK, OPTIONS, NoPublisher(), lambda *_: None)
        self.driver_pool = asyncpg.create_pool(
            min_size=0,
            max_size=OPTIONS.connections,
            reset=self._send_nothing,
            connect=lambda *_, **__: connect(url, OPTIONS),
        )
        self._free = OPTIONS.connections

    async def _send_nothing(self, _: object) -> None:
        pass

    async def _take_connection(self) -> Any:
        self._free -= 1
        try:
            if self._free >= 0:
                return await self.driver_pool.acquire()
            if -self._free > OPTIONS.max_waiters:
                raise StoreUnavailable("Too many requests wait for the store.")
            async with asyncio.timeout(OPTIONS.timeout_ms / 1_000):
                return await self.driver_pool.acquire()
        except BaseException as error:
            self._free += 1
            if isinstance(error, Exception):
                raise translate(error) from error
            raise

    async def _fetch(self, sql: str, arguments: tuple[object, ...]) -> list[Any]:
        connection = await self._take_connection()
        try:
            rows: list[Any] = await connection.fetch(sql, *arguments)
            return rows
        except Exception as error:
            await self.driver_pool.expire_connections()
            raise translate(error, repeatable=may_repeat(error)) from error
        finally:
            self._free += 1
            await self.driver_pool.release(connection)


async def pages(read: Read, readers: int) -> float:
    """Microseconds of this process's CPU for a page, with that many readers at once."""

    async def reader() -> None:
        for _ in range(PAGES // readers):
            await read()

    began = time.process_time()
    await asyncio.gather(*(reader() for _ in range(readers)))
    return (time.process_time() - began) * 1_000_000 / (PAGES // readers * readers)


async def compare(url: str, rounds: int) -> None:
    """Print both figures and their ratio for each number of readers."""
    store = backend_for(url, postgres=OPTIONS).open(CLOCK)
    run(url, ANIMALS)
    database = DriverPoolDatabase(url)
    await database.driver_pool
    theirs = PostgresPets(database, CLOCK)
    reads: list[Read] = [lambda: store.pets.page(PAGE), lambda: theirs.page(PAGE)]
    for readers in READERS:
        taken: list[list[float]] = [[], []]
        for each in range(rounds + 2):
            for index in (0, 1) if each % 2 else (1, 0):
                figure = await pages(reads[index], readers)
                if each > 1:  # the first rounds open connections and prepare statements
                    taken[index].append(figure)
        ours, drivers = map(statistics.median, taken)
        ratio = statistics.median(drivers / ours for ours, drivers in zip(*taken, strict=True))
        print(f"{readers:3} readers: {ours:5.1f} µs our pool, {drivers:5.1f} µs asyncpg's, ratio {ratio:.2f}")
    await store.close()
    await database.driver_pool.close()


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    with fresh_database() as url:
        uvloop.run(compare(url, parser.parse_args().rounds))


if __name__ == "__main__":
    main()
