"""An import into a file that can't grow: its rows are staged elsewhere, so it fails where it stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from petstore.core.errors import StoreFull
from petstore.core.pets import NewPet, PageQuery
from petstore.storage.backend import backend_for
from petstore.storage.sqlite.stock import SqliteStockImport
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.stock import stock_row

ROWS = [stock_row(line, None, "x" * 200, 1, None) for line in range(2, 2_002)]


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
