"""PostgreSQL crashes and comes back under load: what was acknowledged is there, the store heals."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from petstore.errors import IdempotencyKeyInUse, StoreUnavailable
from petstore.pets import Idempotency, NewPet, PageQuery
from petstore.plans import FREE
from petstore.storage import Store, StoreOptions, open_storage
from tests.support.clock import ManualClock
from tests.support.postgres import PostgresServer, fresh_database, run
from tests.support.waiting import until


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Of this module alone, since it is crashed."""
    started = PostgresServer().start()
    yield started
    started.drop()


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    with fresh_database(server.url()) as url:
        yield url


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    opened = open_storage(database, ManualClock(), StoreOptions())
    await opened.keys.add_account("shop", FREE)
    yield opened
    await opened.close()


async def started_again(server: PostgresServer) -> None:
    """Until it takes connections, while this event loop goes on."""
    server.launch()
    await asyncio.to_thread(server.await_answers)


class Load:
    """Clients that add animals one after another and note what they were told."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.acknowledged: dict[str, int] = {}
        self.refused = 0
        self.going = True
        self.last_success = 0.0

    async def client(self, number: int) -> None:
        """Every animal has a name of its own, and a key; a refused one is tried again until it is there."""
        count = 0
        while self.going:
            name = f"client {number} animal {count}"
            try:
                created = await self.store.pets.add(NewPet(name, number), Idempotency(1, name))
            except (StoreUnavailable, IdempotencyKeyInUse):
                self.refused += 1
                await asyncio.sleep(0)
                continue
            self.acknowledged[name] = created.pet.id
            self.last_success = time.monotonic()
            count += 1

    async def reader(self) -> None:
        """Reads end as well, in an answer or in a refusal."""
        while self.going:
            try:
                await self.store.pets.page(PageQuery())
            except StoreUnavailable:
                await asyncio.sleep(0)


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT], ids=["immediate", "fast"])
async def test_a_restart_under_load_loses_nothing_that_was_acknowledged(
    server: PostgresServer, database: str, store: Store, how: signal.Signals
) -> None:
    """Three restarts: each animal that a client was told of is there, once, under the id that it was told;
    the first success comes within two seconds of the server's return."""
    load = Load(store)
    tasks = [asyncio.create_task(load.client(number)) for number in range(8)]
    tasks += [asyncio.create_task(load.reader()) for _ in range(4)]
    for turn in range(1, 4):
        goal = len(load.acknowledged) + 50
        await until(lambda goal=goal: len(load.acknowledged) >= goal)
        await asyncio.to_thread(server.stop, how)
        goal = load.refused + 20
        await until(lambda goal=goal: load.refused >= goal)
        await started_again(server)
        returned = time.monotonic()
        await until(lambda returned=returned: load.last_success > returned)
        assert load.last_success - returned < 2, f"restart {turn}"
    load.going = False
    await asyncio.gather(*tasks)
    kept = run(database, "SELECT name, id FROM pets")
    names = [name for name, _ in kept]
    assert len(set(names)) == len(names)
    assert dict(kept) == load.acknowledged


async def test_identifiers_go_on_after_a_crash(server: PostgresServer, store: Store) -> None:
    """I3: the newest animal is removed, the server crashes: no identifier is used again."""
    created = [(await store.pets.add(NewPet("x", 1))).pet.id for _ in range(5)]
    await store._database.write_rows("DELETE FROM pets")  # type: ignore[attr-defined]
    await asyncio.to_thread(server.stop, signal.SIGQUIT)
    await started_again(server)
    assert (await store.pets.add(NewPet("x", 1))).pet.id > max(created)


async def test_versions_after_a_crash_are_others(server: PostgresServer, store: Store) -> None:
    """What was kept before it is read again: the new server may count on with the same numbers."""
    before = await store.versions.current()
    await asyncio.to_thread(server.stop, signal.SIGQUIT)
    with pytest.raises(StoreUnavailable):
        await store.versions.current()
    await started_again(server)
    assert await store.versions.current() != before
