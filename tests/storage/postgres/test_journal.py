"""The order in which no entry appears late, on a server where transactions overlap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from petstore.core.journal import Entry, Position
from petstore.core.pets import NewPet
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.postgres import run
from tests.support.waiting import PATIENCE_SECONDS

REX = NewPet("Rex", 1)
RECORD = (
    "INSERT INTO journal (at_ms, actor, subject, subject_id, action, after{more})"
    " VALUES (0, 'slow', 'pet', 99, 'added', '{{}}'{value})"
)


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    opened = backend_for(database).open(ManualClock())
    yield opened
    await opened.close()


async def whole(store: Store, position: Position, count: int) -> tuple[list[Entry], Position]:
    """The entries after a position, in pages of one, until there are at least so many.

    Any transaction in the server, one of autovacuum or in another database, may hold them up.
    """
    found: list[Entry] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (page := await store.journal.following(position, 1))[0] or len(found) < count:
            found += page[0]
            position = page[1]
    return found, position


async def test_a_transaction_that_commits_late_hides_nothing(store: Store, database: str) -> None:
    """I22: entries of a transaction that began later, and has committed, wait for the one that still runs."""
    await store.pets.add(REX, ACTOR)
    first, position = await whole(store, Position(), 1)
    assert [entry.subject_id for entry in first] == [1]
    slow = await asyncpg.connect(database)
    try:
        await slow.execute("BEGIN")
        await slow.execute(RECORD.format(more="", value=""))
        await store.pets.add(REX, ACTOR)
        await store.pets.add(REX, ACTOR)
        assert [entry.subject_id for entry in await entries(store)] == [1, 2, 3]  # for people: at once
        assert await whole(store, position, 0) == ([], position)
        await slow.execute("COMMIT")
    finally:
        await slow.close()
    late, _ = await whole(store, position, 3)
    assert [entry.subject_id for entry in late] == [99, 2, 3]
    assert [entry.id for entry in late] == [2, 3, 4]


async def test_a_transaction_that_is_rolled_back_holds_nothing_up(store: Store, database: str) -> None:
    """Its identifier is a gap."""
    slow = await asyncpg.connect(database)
    try:
        await slow.execute("BEGIN")
        await slow.execute(RECORD.format(more="", value=""))
        await store.pets.add(REX, ACTOR)
        await slow.execute("ROLLBACK")
    finally:
        await slow.close()
    assert [entry.id for entry in (await whole(store, Position(), 1))[0]] == [2]


async def test_a_dump_of_another_cluster_hides_nothing(store: Store, database: str) -> None:
    """I22: its transactions may be far ahead of this cluster's: its entries come first, once, and whatever is
    written now comes after them. So do those of the dump's transactions that this cluster has passed."""
    for transaction in (3, 2**62, 2**61):
        run(database, RECORD.format(more=", transaction", value=f", '{transaction}'"))
    await store.pets.add(REX, ACTOR)
    first, position = await whole(store, Position(), 4)
    assert [entry.subject_id for entry in first] == [99, 99, 99, 1]
    assert [entry.id for entry in first] == [1, 2, 3, 4]
    await store.pets.add(REX, ACTOR)
    assert [entry.subject_id for entry in (await whole(store, position, 1))[0]] == [2]
