"""Measured, not simulated: bytes of a row in PostgreSQL with the project's schema, and COPY.

A server of its own is started as the tests start theirs. The data lies in memory: no disk is measured here.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator

import asyncpg
import msgspec

from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.schema import migrate
from tests.support.postgres import PostgresServer

_CHUNK = 50_000
_TUNING = PostgresOptions(timeout_ms=600_000, connections=1, max_waiters=1, prepared=True)
# What a row of each table is like; {n} rows of it. Keys and digests of real length.
_FILL = {
    "accounts": "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
    " SELECT 'customer-' || n, 'free', 60, 1000, 1798761600000 FROM generate_series(1, {n}) n",
    "api_keys": "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms)"
    " SELECT n, sha256(n::text::bytea), 'website', 'pets_live_…Ab1Z', 1798761600000"
    " FROM generate_series(1, {n}) n",
    "account_windows": "INSERT INTO account_windows SELECT n, 1798761600000, 10, 20819, 100"
    " FROM generate_series(1, {n}) n",
    "key_activity": "INSERT INTO key_activity SELECT n, 1798761600000 FROM generate_series(1, {n}) n",
    "usage_days": "INSERT INTO usage_days SELECT n % 10000, n / 10000, 100, 2, 0"
    " FROM generate_series(1, {n}) n",
    "creations": "INSERT INTO creations SELECT n % 1000, gen_random_uuid()::text,"
    " sha256(n::text::bytea), n, 1798761600000 + n FROM generate_series(1, {n}) n",
    "journal": "INSERT INTO journal (at_ms, actor, subject, subject_id, action, after)"
    " SELECT 1798761600000, 'api:shop/key 7', 'pet', n, 'added',"
    """ '{{"name":"Rex","categoryId":1,"status":"available"}}' FROM generate_series(1, {n}) n""",
}


class TableSize(msgspec.Struct):
    """Bytes for each row: of the table, and of all of its indexes."""

    table: str
    rows: int
    heap_bytes: float
    index_bytes: float


class Measured(msgspec.Struct):
    """Everything of one run."""

    server: str
    sizes: list[TableSize]
    copied_per_second: float


async def _animals(first: int, last: int) -> AsyncIterator[bytes]:
    for begin in range(first, last + 1, _CHUNK):
        lines = [
            f"{n}\tPet number {n}\t{n % 97}\t{('pending', 'sold')[n % 10 - 8] if n % 10 > 7 else 'available'}"
            for n in range(begin, min(begin + _CHUNK, last + 1))
        ]
        yield ("\n".join(lines) + "\n").encode("ascii")


async def _size(connection: asyncpg.Connection, table: str) -> TableSize:
    await connection.execute(f"VACUUM ANALYZE {table}")
    row = await connection.fetchrow(
        f"SELECT count(*), pg_table_size('{table}'), pg_indexes_size('{table}') FROM {table}"
    )
    return TableSize(table, row[0], row[1] / row[0], row[2] / row[0])


async def _measure(url: str, animals: list[int], others: int) -> Measured:
    connection = await asyncpg.connect(url)
    try:
        rates, before, size = [], 0, None
        for count in animals:
            began = time.perf_counter()
            await connection.copy_to_table(
                "pets", source=_animals(before + 1, count), columns=["id", "name", "category_id", "status"]
            )
            rates.append((count - before) / (time.perf_counter() - began))
            size, before = await _size(connection, "pets"), count
        sizes = [size] if size else []
        for table, sql in _FILL.items():
            await connection.execute(sql.format(n=others))
            sizes.append(await _size(connection, table))
        version = await connection.fetchval("SHOW server_version")
        return Measured(str(version), sizes, statistics.median(rates))
    finally:
        await connection.close()


def measure(animals: list[int], others: int) -> Measured:
    """Fill the tables, the animals step by step, and look."""
    settings = ("shared_buffers=512MB", "max_wal_size=2GB", "autovacuum=off", "jit=off")
    with PostgresServer(*settings).start() as server:
        migrate(server.url(), _TUNING)
        return asyncio.run(_measure(server.url(), animals, min(others, animals[-1])))
