"""A large store: the same rows for SQLite and PostgreSQL, by statements that both understand.

Account 1 is the busy one: it has a tenth of the orders, a hundred keys and usage of every day of a quarter.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import asyncpg
import msgspec

from petstore.core.clock import SystemClock
from petstore.core.durations import DAY_MS, MINUTE_MS
from tests.support.backends import in_store
from tests.support.console_places import People, add_people
from verification.benchmarks.data import CACHE, emptied, filling

_COUNTER = "WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < {0})"
_DAYS_OF_ALL, _DAYS_OF_THE_BUSY = 10, 90
_TRIES = 10_000


class Size(msgspec.Struct, frozen=True):
    """How many rows. Each account has ten days of usage."""

    animals: int
    accounts: int
    orders: int
    entries: int

    @property
    def name(self) -> str:
        return "-".join(str(value) for value in msgspec.structs.astuple(self))


def _statements(size: Size, now_ms: int, digest: str) -> list[str]:
    """`digest`: 32 bytes that differ for each `n`, in the store's SQL."""
    today = now_ms // DAY_MS
    keys, banned = size.accounts + 100, max(size.accounts // 100, 1)
    webhooks = max(size.accounts // 10, 1)
    return [
        f"""INSERT INTO categories (id, name) {_COUNTER.format(100)}
        SELECT n, 'Category ' || n FROM counter""",
        f"""INSERT INTO pets (name, category_id, status) {_COUNTER.format(size.animals)}
        SELECT CASE n % 5 WHEN 0 THEN 'Bella' WHEN 1 THEN 'Charlie' WHEN 2 THEN 'Daisy' WHEN 3 THEN 'Rex'
                ELSE 'Pet' END || ' ' || n,
            CASE WHEN n % 1000 = 7 THEN 3 WHEN n % 3 = 0 THEN 1 ELSE n % 97 END,
            CASE WHEN n > {size.orders} THEN CASE n % 5 WHEN 0 THEN 'sold' ELSE 'available' END
                WHEN n % 20 >= 6 THEN 'sold' WHEN n % 20 >= 3 THEN 'available' ELSE 'pending' END
        FROM counter""",
        f"""INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms, suspended_at_ms)
        {_COUNTER.format(size.accounts)}
        SELECT 'customer-' || n, 'free', 60, 1000, {now_ms} - n, CASE WHEN n % 50 = 0 THEN {now_ms} END
        FROM counter""",
        f"""INSERT INTO api_keys (account_id, digest, label, display, created_at_ms) {_COUNTER.format(keys)}
        SELECT CASE WHEN n > {size.accounts} THEN 1 ELSE n END, {digest}, 'web site', 'pets_live_…Ab1Z',
            {now_ms} - n FROM counter""",
        f"""INSERT INTO key_activity (key_id, last_used_at_ms) {_COUNTER.format(keys)}
        SELECT n, {now_ms} FROM counter""",
        f"""INSERT INTO key_standings {_COUNTER.format(banned)}
        SELECT n, 0, {now_ms}, 60, {now_ms}, 1, {now_ms}, {now_ms + DAY_MS} + n, 0 FROM counter""",
        f"""INSERT INTO account_windows {_COUNTER.format(size.accounts)}
        SELECT n, {now_ms - now_ms % MINUTE_MS}, 10, {today}, n % 1000 FROM counter""",
        f"""INSERT INTO usage_days (account_id, day, requests, refused, deprecated)
        {_COUNTER.format(size.accounts * _DAYS_OF_ALL)}
        SELECT 1 + n % {size.accounts}, {today} - n / {size.accounts}, 100 + n % 50, n % 3,
            CASE WHEN (n % {size.accounts}) % 10 = 0 THEN 5 ELSE 0 END FROM counter
        WHERE 1 + n % {size.accounts} > 1""",
        f"""INSERT INTO usage_days (account_id, day, requests, refused, deprecated)
        {_COUNTER.format(_DAYS_OF_THE_BUSY)}
        SELECT 1, {today} - n + 1, 900 + n % 90, n % 7, n % 2 FROM counter""",
        f"""INSERT INTO webhooks (account_id, key_id, url, types, description, created_at_ms, secrets,
            data_set, after_transaction, after_id, failing_since_ms) {_COUNTER.format(webhooks)}
        SELECT n, n, 'https://shop.example/hook', '*', '', {now_ms}, '', '', 0, 0,
            CASE WHEN n % 10 = 1 THEN {now_ms} - n END FROM counter""",
        f"""INSERT INTO webhook_tries (webhook_id, event_id, type, at_ms, duration_ms, status, fault, answer)
        {_COUNTER.format(_TRIES)}
        SELECT 1, 'evt_0f3a9c2b5d7e_' || n, 'pet.updated', {now_ms} - n, 120, 500,
            'Expected a status from 200 to 299, got 500.', '{"x" * 1_024}' FROM counter""",
        f"""INSERT INTO orders (account_id, pet_id, status, ship_date_ms, created_at_ms)
        {_COUNTER.format(size.orders)}
        SELECT CASE WHEN n % 10 = 0 THEN 1 ELSE 1 + n % {size.accounts} END, n,
            CASE WHEN n % 20 = 0 THEN 'placed' WHEN n % 20 < 3 THEN 'approved'
                WHEN n % 20 < 6 THEN 'cancelled' ELSE 'delivered' END,
            NULL, {now_ms} - CAST({size.orders} - n AS bigint) * {MINUTE_MS} FROM counter""",
        f"""INSERT INTO journal (at_ms, actor, subject, subject_id, action, before, after)
        {_COUNTER.format(size.entries)}
        SELECT {now_ms} - CAST({size.entries} - n AS bigint) * {MINUTE_MS},
            'api:customer-' || (1 + n % {size.accounts}) || '/key 7',
            CASE n % 10 WHEN 0 THEN 'order' WHEN 1 THEN 'account' ELSE 'pet' END,
            CASE n % 10 WHEN 1 THEN 1 + n % {size.accounts} ELSE 1 + n % {size.animals} END, 'changed',
            '{{"status":"available"}}', '{{"status":"pending"}}' FROM counter""",
    ]


def fill_sqlite(size: Size) -> tuple[Path, People]:
    """A database of that size, made once and kept in the cache; its path, and its people.

    A session ends after half a day: from then on the database is made anew.
    """
    folder = CACHE / f"console-{size.name}"
    path, known = folder / "petstore.db", folder / "people.txt"
    if known.exists() and time.time() - known.stat().st_mtime < DAY_MS / 2_000:
        return path, People(*known.read_text(encoding="ascii").split())
    emptied(folder)
    people = in_store(f"sqlite:///{path}", add_people)
    with filling(path) as connection:
        for statement in _statements(size, SystemClock().now_ms(), "randomblob(32)"):
            connection.execute(statement)
    known.write_text("\n".join(people), encoding="ascii")
    return path, people


def fill_postgres(url: str, size: Size) -> People:
    """Fill an empty database of PostgreSQL."""

    async def fill() -> None:
        connection = await asyncpg.connect(url)
        for sql in _statements(size, SystemClock().now_ms(), "sha256(n::text::bytea)"):
            await connection.execute(sql)
        await connection.execute("VACUUM ANALYZE")
        await connection.close()

    people = in_store(url, add_people)
    asyncio.run(fill())
    return people
