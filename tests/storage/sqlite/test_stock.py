"""An import into a file that can't grow, and into one that somebody reads."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from petstore.core.errors import StoreFull
from petstore.core.pets import NewPet, PetQuery
from petstore.storage.backend import backend_for
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite.stock import SqliteStockImport
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.stock import stock_row
from tests.support.waiting import PATIENCE_SECONDS

ROWS = [stock_row(line, None, "x" * 200, 1, None) for line in range(2, 2_002)]


async def test_a_full_disk_stores_nothing_and_lets_others_write(tmp_path: Path) -> None:
    """The command says so, and the write lock is free: its rows are staged elsewhere, so it fails where it
    stores."""
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
        assert (await store.pets.page(PetQuery())).pets == [added.pet]
        assert len(await entries(store)) == 1
    await store.close()


async def test_an_import_waits_for_no_reader(tmp_path: Path) -> None:
    """A reader is a backup, however long that takes: writers would wait with it."""
    path = f"{tmp_path}/shop.db"
    store = backend_for(f"sqlite:///{path}", SqliteOptions(busy_timeout_ms=3_600_000)).open(ManualClock())
    with closing(apsw.Connection(path)) as backup:
        backup.execute("BEGIN; SELECT 1 FROM pets").fetchall()
        async with store.stock.importing(ACTOR, None) as load:
            await load.stage(ROWS)
            await load.plan()
            storing = asyncio.create_task(load.store())
            await asyncio.wait([storing], timeout=PATIENCE_SECONDS)
            has_ended = storing.done()
            backup.execute("ROLLBACK")
            await storing
    await store.close()
    assert has_ended
