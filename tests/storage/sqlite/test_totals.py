"""A count of the file: nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import pytest

from petstore.core.pets import NewPet, PetStatus
from petstore.storage.backend import backend_for
from petstore.storage.sqlite import totals
from petstore.storage.sqlite.database import run
from petstore.transactions.script import Script
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR


async def test_reads_and_writes_go_on_during_a_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count has a thread and a connection of its own: it goes on after animals were added and read."""
    began, may_go_on = threading.Event(), threading.Event()

    def slow(connection: apsw.Connection, script: Script[Any]) -> Any:
        began.set()
        assert may_go_on.wait(10), "the event loop was held up"
        return run(connection, script)

    monkeypatch.setattr(totals, "run", slow)
    store = backend_for(f"sqlite:///{tmp_path}/petstore.db").open(ManualClock())
    counting = asyncio.create_task(store.totals.count(0, ZoneInfo("UTC")))
    await asyncio.to_thread(began.wait, 10)
    added = (await store.pets.add(NewPet("Rex", 1), ACTOR)).pet
    assert await store.pets.get_or_none(added.id) == added
    assert not counting.done()
    may_go_on.set()
    assert (await counting).pets[PetStatus.AVAILABLE] == 1
    await store.close()
