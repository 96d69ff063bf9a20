"""The migration of a database of 1.0.0; the long form is `python -m verification.torture migration`."""

from __future__ import annotations

import asyncio

import asyncpg

from petstore.core.pets import PetChange, PetStatus
from tests.support.backends import execute_at, opened_store
from tests.support.carryover import faults, fill_first_release
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.postgres import LOCK_WAITS, fresh_database
from tests.support.schemas import migrate
from tests.support.waiting import until

_ANIMALS, _CHANGES = 3_000, 500
_LATE = (
    "INSERT INTO pet_status_changes (pet_id, at_ms, actor, from_status, to_status)"
    " VALUES (9, 5, 'cli:late', 'pending', 'sold')"
)


async def test_the_history_becomes_the_journal(url: str) -> None:
    """I22: every change of before, in its order, for this program and for the views of 1.0.0."""
    await asyncio.to_thread(fill_first_release, url, _ANIMALS, _CHANGES)
    migrate(url)
    assert list(faults(url, _ANIMALS, _CHANGES)) == []
    async with opened_store(url, ManualClock()) as store:
        await store.pets.change(1, PetChange(status=PetStatus.SOLD), ACTOR)
        found = [(entry.type, entry.actor, entry.after) for entry in await entries(store, "pet:1")]
    assert found == [
        ("pet.changed", "cli:anna", {"status": "pending"}),
        ("pet.changed", ACTOR, {"status": "sold"}),
    ]


async def test_a_change_that_commits_while_the_history_is_carried_over_is_kept() -> None:
    """I22: a program of 1.0.0 on PostgreSQL is in the middle of a transaction when the migration begins."""
    with fresh_database() as url:
        await asyncio.to_thread(fill_first_release, url, 10, 10)
        slow = await asyncpg.connect(url)
        try:
            await slow.execute("BEGIN")
            await slow.execute(_LATE)
            migrating = asyncio.create_task(asyncio.to_thread(migrate, url))
            await until(lambda: execute_at(url, LOCK_WAITS) != [(0,)] or migrating.done())
            await slow.execute("COMMIT")
        finally:
            await slow.close()
        await migrating
        assert execute_at(url, "SELECT subject_id, after FROM journal WHERE actor = 'cli:late'") == [
            (9, '{"status":"sold"}')
        ]
