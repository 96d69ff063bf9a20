"""1.0.0 and this program on one database: its statements, as it sends them, on the schema of now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import apsw
import asyncpg
import pytest

from petstore.core.durations import DAY_MS
from petstore.core.idempotency import IdempotencyKey, fingerprint
from petstore.core.pets import AddedPet, NewPet, Pet, PetStatus
from petstore.storage.backend import sqlite_path
from petstore.storage.store import Store
from petstore.transactions.idempotency import lock_number
from tests.storage.contract.test_schema_steps import newest
from tests.support.backends import execute_at, opened_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database, plain_user, run
from tests.support.schemas import make_first_release, migrate

REX = NewPet("Rex", 1)
RIGHTS = "SELECT, INSERT, UPDATE, DELETE"

ADD_ONCE = """
WITH mine AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock($1::bigint) AS held
), known AS (
    SELECT fingerprint, pet_id FROM idempotency_keys
    WHERE account_id = $2::bigint AND key = $3::text AND created_at_ms > $5::bigint - 86400000
), claimed AS (
    INSERT INTO idempotency_keys AS kept (account_id, key, fingerprint, pet_id, created_at_ms)
    SELECT $2::bigint, $3::text, $4::bytea, nextval('pets_id_seq'), $5::bigint FROM mine
    WHERE held AND NOT EXISTS (SELECT FROM known)
    ON CONFLICT (account_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at_ms = excluded.created_at_ms
    WHERE kept.created_at_ms <= $5::bigint - 86400000
    RETURNING pet_id
), added AS (
    INSERT INTO pets (id, name, category_id, status) OVERRIDING SYSTEM VALUE
    SELECT pet_id, $6::text, $7::bigint, $8::text FROM claimed RETURNING id
)
SELECT mine.held, (SELECT id FROM added), known.fingerprint, known.pet_id FROM mine LEFT JOIN known ON true
"""
PURGE = """
DELETE FROM idempotency_keys WHERE (account_id, key) IN (
    SELECT account_id, key FROM idempotency_keys WHERE created_at_ms <= $1::bigint - 86400000
    ORDER BY created_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
) RETURNING 1
"""


class FirstRelease:
    """A program of 1.0.0 on the database at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def add(self, key: IdempotencyKey, now_ms: int) -> tuple[int, bool]:
        """Add REX once: its id, and whether that is a replay."""
        mark = fingerprint(REX)
        if not self.url.startswith("sqlite"):
            connection = await asyncpg.connect(self.url)
            pet = (REX.name, REX.category_id, REX.status.value)
            row = await connection.fetchrow(
                ADD_ONCE, lock_number(key), key.account_id, key.text, mark, now_ms, *pet
            )
            await connection.close()
            held, added, known, known_id = row
            assert held
            assert known in (None, mark)
            return (added, False) if known_id is None else (known_id, True)
        with closing(apsw.Connection(sqlite_path(self.url))) as file:
            row = file.execute(
                "SELECT fingerprint, pet_id FROM idempotency_keys"
                " WHERE account_id = ? AND key = ? AND created_at_ms > ?",
                (key.account_id, key.text, now_ms - DAY_MS),
            ).fetchone()
            if row is not None:
                assert row[0] == mark
                return row[1], True
            file.execute("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')")
            kept = (key.account_id, key.text, mark, file.last_insert_rowid(), now_ms)
            file.execute("INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?, ?, ?, ?)", kept)
            return kept[3], False

    async def purge(self, now_ms: int) -> None:
        """Delete the keys that have outlived their day."""
        if not self.url.startswith("sqlite"):
            connection = await asyncpg.connect(self.url)
            await connection.fetch(PURGE, now_ms, 1_000)
            await connection.close()
            return
        with closing(apsw.Connection(sqlite_path(self.url))) as file:
            file.execute(
                "DELETE FROM idempotency_keys WHERE (account_id, key) IN"
                " (SELECT account_id, key FROM idempotency_keys WHERE created_at_ms <= ? LIMIT ?)",
                (now_ms - DAY_MS, 1_000),
            )


@pytest.fixture
def first(url: str, monkeypatch: pytest.MonkeyPatch) -> FirstRelease:
    """Make a store of the first release, with an account, on a database of its own."""
    make_first_release(url, monkeypatch)
    execute_at(
        url,
        "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms) VALUES ('a', 'free', 1, 1, 1)",
    )
    return FirstRelease(url)


@pytest.fixture
async def store(first: FirstRelease, clock: ManualClock) -> AsyncIterator[Store]:
    """This program on that database, which it has migrated; an animal of 1.0.0 is in it."""
    await first.add(IdempotencyKey(1, "before"), clock.now_ms())
    migrate(first.url)
    async with opened_store(first.url, clock) as opened:
        yield opened


def replay(pet_id: int) -> AddedPet:
    return AddedPet(Pet(pet_id, "Rex", 1, PetStatus.AVAILABLE), True)


async def test_its_database_is_migrated(first: FirstRelease, store: Store) -> None:
    """Every later step runs, and a key that 1.0.0 has kept means its animal still."""
    assert execute_at(first.url, "SELECT max(number) FROM schema_steps") == [(newest(first.url),)]
    assert await store.pets.add(REX, ACTOR, IdempotencyKey(1, "before")) == replay(1)


async def test_a_key_makes_one_animal_for_both(first: FirstRelease, store: Store, clock: ManualClock) -> None:
    """Whichever of the two programs was asked first; also when the key is used again after its day."""
    old, new = IdempotencyKey(1, "old"), IdempotencyKey(1, "new")
    for _ in range(2):
        added = (await first.add(old, clock.now_ms()))[0]
        assert await store.pets.add(REX, ACTOR, old) == replay(added)
        created = await store.pets.add(REX, ACTOR, new)
        assert not created.replayed
        assert await first.add(new, clock.now_ms()) == (created.pet.id, True)
        clock.advance(DAY_MS / 1_000)


async def test_each_purges_what_the_other_kept(first: FirstRelease, store: Store, clock: ManualClock) -> None:
    """Each release purges the other's idempotency keys after their day, and not a moment before."""
    await store.pets.add(REX, ACTOR, IdempotencyKey(1, "late"))
    clock.advance(DAY_MS / 1_000 - 0.001)
    await first.purge(clock.now_ms())
    assert execute_at(first.url, "SELECT count(*) FROM creations") == [(2,)]
    clock.advance(0.001)
    await first.purge(clock.now_ms())
    assert execute_at(first.url, "SELECT count(*) FROM creations") == [(0,)]
    await first.add(IdempotencyKey(1, "later"), clock.now_ms())
    clock.advance(DAY_MS / 1_000)
    await store.purge(clock.now_ms())
    assert execute_at(first.url, "SELECT count(*) FROM idempotency_keys") == [(0,)]


async def test_it_does_not_take_another_thing_for_an_animal(first: FirstRelease, store: Store) -> None:
    """A key that created something else is not there for 1.0.0, which knows animals alone."""
    execute_at(first.url, "UPDATE creations SET resource = 'order'")
    assert execute_at(first.url, "SELECT count(*) FROM idempotency_keys") == [(0,)]


class TestPostgres:
    """What only a server's database has."""

    @pytest.fixture
    def url(self) -> Iterator[str]:
        with fresh_database() as address:
            yield address

    async def test_both_note_that_they_serve_with_valkey(self, url: str, store: Store) -> None:
        """Each sees the other's note, and takes it away."""
        note = "INSERT INTO shared_counters DEFAULT VALUES ON CONFLICT DO NOTHING"
        for _ in range(2):
            run(url, note)
        assert await store.served_with_valkey()
        run(url, "DELETE FROM shared_counters")
        assert not await store.served_with_valkey()
        await store.note_serving(with_valkey=True)
        run(url, note)
        assert run(url, "SELECT 1 FROM shared_counters") == [(1,)]

    @pytest.mark.parametrize("owns", [False, True], ids=["rights", "owner"])
    async def test_its_user_need_not_migrate(self, first: FirstRelease, url: str, owns: bool) -> None:
        """Rights on the tables of 1.0.0, noted or their owner's, are rights on what stands in their place."""
        with plain_user(url, "" if owns else RIGHTS, owns=owns) as address:
            migrate(url)
            guest = FirstRelease(address)
            key = IdempotencyKey(1, "guest")
            added = await guest.add(key, ManualClock().now_ms())
            assert await guest.add(key, ManualClock().now_ms()) == (added[0], True)
            await guest.purge(ManualClock().now_ms() + DAY_MS)
            run(guest.url, "INSERT INTO shared_counters DEFAULT VALUES ON CONFLICT DO NOTHING")
            assert run(url, "SELECT count(*) FROM creations") == [(0,)]
