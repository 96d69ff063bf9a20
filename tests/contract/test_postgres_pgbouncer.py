"""PgBouncer in transaction mode: the contract runs through it as [pgbouncer]; here is what only it shows."""

from __future__ import annotations

import asyncio

from petstore.pets import Idempotency, NewPet, PageQuery
from petstore.plans import FREE
from petstore.storage import StoreOptions, open_storage
from tests.support.clock import ManualClock
from tests.support.pgbouncer import pooled
from tests.support.postgres import fresh_database, run


async def test_many_clients_take_turns_on_few_connections() -> None:
    """Two stores of ten connections each, reading and writing at once over three of the server's: every
    statement finds the session that it needs, and no animal gets lost or mixed up."""
    with fresh_database() as url:
        options = StoreOptions(database_prepared=False)
        stores = [open_storage(pooled(url), ManualClock(), options) for _ in range(2)]
        await stores[0].keys.add_account("shop", FREE)

        async def client(number: int) -> None:
            store = stores[number % 2]
            for count in range(5):
                name = f"{number}-{count}"
                created = await store.pets.add(NewPet(name, number), Idempotency(1, name))
                found = await store.pets.get(created.pet.id)
                assert found == created.pet
                page = await store.pets.page(PageQuery(limit=100, after_id=created.pet.id - 1))
                assert page.pets[0] == created.pet

        await asyncio.gather(*(client(number) for number in range(20)))
        connected = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert run(url, connected)[0][0] <= 3
        assert run(url, "SELECT count(*) FROM pets") == [(100,)]
        for store in stores:
            await store.close()
