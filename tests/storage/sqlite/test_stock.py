"""An import into a file that can't grow: its rows are staged elsewhere, so it fails where it stores."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from petstore.core.errors import StoreFull
from petstore.core.lists.importing import BadRows, plan_and_store
from petstore.core.lists.reading import CsvList
from petstore.core.pets import NewPet, PageQuery, Pet, PetChange, PetStatus
from petstore.core.stock import StockPlan, StockRow
from petstore.storage.backend import backend_for
from petstore.storage.sqlite.stock import SqliteStockImport
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries

ROWS = [StockRow(line, None, ("x" * 200, 1, None)) for line in range(2, 2_002)]


async def test_a_full_disk_stores_nothing_and_lets_others_write(tmp_path: Path) -> None:
    """The command says so, and the write lock is free."""
    store = backend_for(f"sqlite:///{tmp_path}/shop.db").open(ManualClock())
    async with store.stock.importing(ACTOR, None) as load:
        assert isinstance(load, SqliteStockImport)
        await load.stage(ROWS)
        await load.plan()
        connection = load._connection
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').get + 9}")
        with pytest.raises(StoreFull, match="nothing was stored"):
            await load.store()
        added = await store.pets.add(NewPet("Rex", 1), ACTOR)
        assert (await store.pets.page(PageQuery())).pets == [added.pet]
        assert len(await entries(store)) == 1
    await store.close()


async def test_a_list_is_stored_however_often_its_animals_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of some plans is made while nobody else writes; a change of then waits for the import."""
    store = backend_for(f"sqlite:///{tmp_path}/shop.db").open(ManualClock())
    async with store.stock.importing(ACTOR, "sku") as load:
        await load.stage([StockRow(2, "A", ("Rex", 1, None))])
        await load.plan()
        await load.store()
    changes: list[asyncio.Task[Pet]] = []
    async with store.stock.importing(ACTOR, "sku") as load:
        await load.stage([StockRow(2, "A", ("Rex", 2, None))])
        make = load.plan

        async def plan(*, locked: bool = False) -> StockPlan:
            planned = await make(locked=locked)
            change = store.pets.change(1, PetChange(name=f"Max {len(changes)}"), ACTOR)
            changes.append(asyncio.ensure_future(change))
            if not locked:
                await changes[-1]
            return planned

        monkeypatch.setattr(load, "plan", plan)
        bad = BadRows(CsvList(io.BytesIO(b"sku,name,categoryId"), "sku"), None)
        done, _ = await plan_and_store(load, bad, stores=lambda *_: True)
    assert (done.changed, len(changes)) == (1, 4)
    assert await changes[-1] == Pet(1, "Max 3", 2, PetStatus.AVAILABLE)
    kept = [entry.after for entry in await entries(store)]
    assert kept[-2:] == [{"name": "Rex", "categoryId": 2}, {"name": "Max 3"}]
    await store.close()
