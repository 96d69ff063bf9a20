"""The background process and the index of searches: when it works on it, and how much it rests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from petstore import config
from petstore.background import search
from petstore.core.errors import StoreUnavailable
from petstore.core.pets import NewPet
from petstore.core.search import IndexProgress
from petstore.storage.store import Store
from petstore.transactions.search import Search
from petstore.wiring.jobs import carry_out_jobs
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that it has rested; it ends before the ninth time."""
    rested: list[float] = []

    async def sleep(seconds: float) -> None:
        if len(rested) == 8:
            raise asyncio.CancelledError
        rested.append(round(seconds, 3))

    monkeypatch.setattr("petstore.background.search.asyncio.sleep", sleep)
    return rested


async def follow(found: Search, clock: ManualClock) -> None:
    with pytest.raises(asyncio.CancelledError):
        await search.run(found, clock)


async def test_requests_come_before_the_newest_names(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """A new index is worked on for half of the time, the journal for a twentieth, nothing once a second; and
    what was left alone for half of the time."""
    monkeypatch.setattr("petstore.transactions.search.ENTRIES_SCANNED_MAX", 1)
    step = Search.step

    async def slow_step(self: Search) -> IndexProgress | None:
        clock.advance(0.1)
        if len(pauses) == 5:
            await add_three()
        return await step(self)

    async def add_three() -> None:
        for name in ("Rex", "Max", "Tom"):
            await store.pets.add(NewPet(name, 1), ACTOR)

    monkeypatch.setattr(Search, "step", slow_step)
    await follow(store.search, clock)
    # Begun, three kinds of texts, up to date; then three animals.
    assert pauses == [0.1, 0.1, 0.1, 0.1, 1.0, 1.9, 1.9, 1.0]
    await add_three()
    pauses.clear()
    await follow(store.search, clock)
    assert pauses[:3] == [0.1, 0.1, 1.0]


async def test_a_wait_for_the_database_does_not_stop_it_for_long(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """The rest is half a minute at most."""

    async def wait(_: Search) -> IndexProgress:
        clock.advance(60)
        return IndexProgress(await store.events.newest())

    monkeypatch.setattr(Search, "step", wait)
    await follow(store.search, clock)
    assert pauses == [30.0] * 8


async def test_a_fault_is_said_once(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """It is tried again twice a minute."""

    async def full(_: Search) -> None:
        raise StoreUnavailable("disk full")

    monkeypatch.setattr(Search, "step", full)
    with capture_logs() as lines:
        await follow(store.search, clock)
    assert [(line["event"], line["reason"]) for line in lines] == [("search index not written", "disk full")]
    assert pauses == [30.0] * 8


@pytest.mark.parametrize("console", ["on", "off"])
async def test_there_is_an_index_only_with_the_console_that_searches(tmp_path: Path, console: str) -> None:
    """Nobody else pays for it."""
    file = tmp_path / "petstore.db"
    settings = config.load({"PETSTORE_DATABASE_URL": f"sqlite:///{file}", "PETSTORE_CONSOLE": console})
    begun = asyncio.Event()
    work = asyncio.create_task(carry_out_jobs(settings, None, begun.set))
    await begun.wait()
    await asyncio.sleep(0)
    modules = {task.get_stack()[0].f_globals["__name__"] for task in asyncio.all_tasks()}
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ("petstore.background.search" in modules) == (console == "on")
