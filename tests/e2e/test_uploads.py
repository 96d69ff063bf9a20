"""A list of the console beside two services on one PostgreSQL: begun on one, killed, stored on the other."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from petstore import config
from petstore.core.durations import MINUTE_MS
from petstore.core.pets import PageQuery
from petstore.core.uploads import NewUpload, PartKind, UploadState, pack
from petstore.storage.backend import Store
from petstore.wiring.administration import backend_of
from petstore.wiring.asgi import Application
from petstore.wiring.import_process import ImportTask, UploadWork
from petstore.wiring.import_processes import ImportProcesses
from tests.console.test_stock import finished, names, send
from tests.support.clock import ManualClock
from tests.support.console import Visitor
from tests.support.postgres import fresh_database
from tests.support.service import Shop
from tests.support.valkey import emptied_url
from tests.support.waiting import pause

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROWS, KILLS = 4_000, 6
ANNA = "console:anna"


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[config.Settings]:
    """Those of a service on a database of each kind."""
    if request.param == "sqlite":
        yield config.load({"PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/petstore.db"})
        return
    with fresh_database() as url:
        yield config.load({"PETSTORE_DATABASE_URL": url})


async def names_of(store: Store) -> list[str]:
    return [pet.name for pet in (await store.pets.page(PageQuery(10_000))).pets]


async def test_a_killed_process_has_stored_all_or_nothing(settings: config.Settings) -> None:
    """SIGKILL at random moments, without source keys: the last repetition stores the list exactly once."""
    chance = random.Random(int(os.environ.get("TEST_SEED", "7")))
    clock = ManualClock()
    store = backend_of(settings).open(clock)
    processes = ImportProcesses(settings, store.uploads)
    try:
        upload_id = await store.uploads.begin(NewUpload("stock.csv", "csv", None), ANNA)
        content = b"name,categoryId\n" + b"".join(b"Rex %d,1\n" % number for number in range(ROWS))
        await store.uploads.add_part(upload_id, PartKind.LIST, 0, pack(content))
        await store.uploads.arrived(upload_id, len(content))
        run = await store.uploads.claim(upload_id, UploadState.CHECKING, ANNA)
        await UploadWork(store, run, ANNA).carry_out()
        for _ in range(KILLS):
            upload = await store.uploads.find(upload_id)
            if upload.state is UploadState.STORED:
                break
            run = await store.uploads.claim(upload_id, UploadState.STORING, ANNA, seen=upload.run)
            process = await asyncio.to_thread(processes._spawn, ImportTask(settings, run, ANNA))
            await asyncio.to_thread(pause, chance.uniform(0.1, 1.0))
            process.kill()
            process.communicate()
            clock.advance(2 * MINUTE_MS / 1_000)
            stored = (await store.uploads.find(upload_id)).state is UploadState.STORED
            assert len(await names_of(store)) == (ROWS if stored else 0)
        else:
            seen = (await store.uploads.find(upload_id)).run
            run = await store.uploads.claim(upload_id, UploadState.STORING, ANNA, seen=seen)
            await UploadWork(store, run, ANNA).carry_out()
        assert await names_of(store) == [f"Rex {number}" for number in range(ROWS)]
    finally:
        await store.close()


@pytest.fixture
async def shops() -> AsyncIterator[list[Shop]]:
    """Two services that share a PostgreSQL and a Valkey."""
    with fresh_database() as url:
        environment = {
            "PETSTORE_DATABASE_URL": url,
            "PETSTORE_VALKEY_URL": emptied_url(),
            "PETSTORE_ACCESS_LOG": "off",
        }
        opened = []
        for _ in range(2):
            application = Application(config.load(environment))
            await application.start()
            shop = Shop(application, None, None, steers_counters=False)  # type: ignore[arg-type]
            opened.append(shop)
        opened[0].key, _ = await opened[0].open_account("tests", "enterprise", 10**6, 10**7)
        yield opened
        for shop in opened:
            await shop.application.stop()


async def test_sent_to_one_and_stored_on_the_other(shops: list[Shop]) -> None:
    """A session is good on both; what one of them stores, the other's next page has."""
    one, other = shops
    staff = await Visitor(one).sign_in_as("staff")
    assert (await one.ask("GET", "/v1/pets")).json() == []
    await send(staff)
    staff.shop = other
    shown = await finished(staff)
    await staff.submit(shown, "/store")
    staff.shop = one
    assert "Added 2" in (await finished(staff)).text
    assert [pet["name"] for pet in (await one.ask("GET", "/v1/pets")).json()] == await names(other)
