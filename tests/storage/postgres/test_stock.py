"""What an import holds up on a server where transactions overlap, and what it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from petstore.core.events import Event
from petstore.core.pets import NewPet, PetChange
from petstore.core.stock import StockPlan
from petstore.core.versions import NoPublisher
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, followed
from tests.support.postgres import LOCK_WAITS, ROW_WAITS, outside, run
from tests.support.stock import stock_row
from tests.support.waiting import PATIENCE_SECONDS, until

ROWS = [stock_row(2, "A", "Rex", 1, None), stock_row(3, "B", "Mia", 1, None)]
RENAMED = [stock_row(2, "A", "Max", 1, None)]
OPEN_TRANSACTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' AND xact_start IS NOT NULL"
)


class Publisher(NoPublisher):
    """Holds a change up before its commit, until `go`."""

    def __init__(self) -> None:
        self.arrived, self.go = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def changing(self, *, catalogue: bool = False, keyring: bool = False) -> AsyncIterator[None]:
        self.arrived.set()
        await self.go.wait()
        yield


@pytest.fixture
async def stores(database: str) -> AsyncIterator[list[Store]]:
    """Two, as of two processes."""
    async with AsyncExitStack() as opened:
        made = [backend_for(database).open(ManualClock()) for _ in range(2)]
        for store in made:
            opened.push_async_callback(store.close)
        yield made


async def add_rows(store: Store) -> None:
    async with store.stock.importing(ACTOR, "sku") as load:
        await load.stage(ROWS)
        await load.plan()
        await load.store()


async def test_an_import_holds_no_event_back_before_it_stores(stores: list[Store], database: str) -> None:
    """What others write meanwhile appears at once, after each step, and no transaction stays open: a
    temporary table is written to by many short ones."""
    store, other = stores
    await add_rows(store)
    after = None

    async def nothing_is_held_back() -> None:
        nonlocal after
        assert run(database, OPEN_TRANSACTIONS) == [(0,)]
        added = (await other.pets.add(NewPet("beside", 1), ACTOR)).pet
        seen: list[Event] = []
        async with asyncio.timeout(PATIENCE_SECONDS):  # autovacuum may hold it up
            while added.id not in [event.data["id"] for event in seen]:
                page = await followed(other, after)
                seen, after = page.events, page.after

    async with store.stock.importing(ACTOR, "sku") as load:
        await nothing_is_held_back()
        await load.stage(RENAMED)
        await nothing_is_held_back()
        await load.stage([stock_row(4, "B", "Mia", 1, None), stock_row(5, "B", "Mia", 2, None)])
        assert await load.plan() == StockPlan(0, 1, 0, 2)
        await nothing_is_held_back()
        assert [fault async for page in load.rejected() for _, fault in page]
        await nothing_is_held_back()
        await other.pets.change(1, PetChange(name="Bo"), ACTOR)
        assert await load.store() is None
        await nothing_is_held_back()


async def test_a_change_that_is_about_to_commit_is_waited_for(stores: list[Store], database: str) -> None:
    """The store sees it, and stores nothing: it compares what nobody else can change any more."""
    store = stores[0]
    await add_rows(store)
    async with outside(database) as slow, store.stock.importing(ACTOR, "sku") as load:
        await load.stage(RENAMED)
        await load.plan()
        await slow.execute("BEGIN; UPDATE pets SET name = 'Bo' WHERE id = 1")
        storing = asyncio.create_task(load.store())
        await until(lambda: storing.done() or run(database, ROW_WAITS) != [(0,)])
        await slow.execute("COMMIT")
        assert await storing is None
        assert await load.plan() == StockPlan(0, 1, 0, 0)
        assert await load.store() is not None
    assert run(database, "SELECT before, after FROM journal WHERE action = 'changed'") == [
        ('{"name":"Bo"}', '{"name":"Max"}')
    ]


async def test_a_locked_plan_holds_its_animals(stores: list[Store], database: str) -> None:
    """A change waits for the import, which then stores what it planned."""
    store, other = stores
    await add_rows(store)
    async with store.stock.importing(ACTOR, "sku") as load:
        await load.stage(RENAMED)
        await load.plan(locked=True)
        changing = asyncio.create_task(other.pets.change(1, PetChange(name="Bo"), ACTOR))
        await until(lambda: changing.done() or run(database, ROW_WAITS) != [(0,)])
        assert await load.store() is not None
    assert (await changing).name == "Bo"


async def test_a_key_that_is_added_while_it_plans_is_not_added_twice(
    stores: list[Store], database: str
) -> None:
    """The row counts once, as new; the store then finds the key taken."""
    async with outside(database) as slow, stores[0].stock.importing(ACTOR, "sku") as load:
        await load.stage(RENAMED)
        await slow.execute("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
        planning = asyncio.create_task(load.plan())
        await until(lambda: planning.done() or run(database, LOCK_WAITS) != [(0,)])
        await slow.execute(
            "INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold');"
            " INSERT INTO pet_sources SELECT 'A', id FROM pets; COMMIT"
        )
        assert await planning == StockPlan(1, 0, 0, 0)
        assert await load.store() is None
        assert await load.plan() == StockPlan(0, 1, 0, 0)


async def test_imports_store_one_after_the_other(stores: list[Store], database: str) -> None:
    """The second one of a list waits before it writes, and then finds what the first one has added. Two that
    write keys in different orders would wait for each other."""
    publisher = Publisher()
    first = backend_for(database).open(ManualClock(), publisher=publisher)
    async with first.stock.importing(ACTOR, "sku") as load, stores[1].stock.importing(ACTOR, "sku") as late:
        for each in (load, late):
            await each.stage(ROWS)
            assert await each.plan() == StockPlan(2, 0, 0, 0)
        storing = asyncio.create_task(load.store())
        await publisher.arrived.wait()
        second = asyncio.create_task(late.store())
        await until(lambda: second.done() or run(database, LOCK_WAITS) != [(0,)])
        publisher.go.set()
        assert await storing is not None
        assert await second is None
        assert await late.plan() == StockPlan(0, 0, 2, 0)
    await first.close()


async def test_nothing_of_an_import_stays_in_the_server(stores: list[Store], database: str) -> None:
    """The temporary tables go with the connection, whether it has stored, or not."""
    left = "SELECT count(*) FROM pg_class WHERE relpersistence = 't'"
    for stores_it in (True, False):
        async with stores[0].stock.importing(ACTOR, "sku") as load:
            await load.stage(ROWS)
            await load.plan()
            if stores_it:
                await load.store()
            assert run(database, left) != [(0,)]
        await until(lambda: run(database, left) == [(0,)])
