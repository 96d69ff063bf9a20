"""The poll that waiting requests share, by itself: what it must not miss, and when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from petstore.api import waits as waiting_requests
from petstore.api.waits import Waits
from petstore.core.errors import EventsGone, StoreUnavailable
from petstore.core.events import Bookmark, EntrySummary, EventPage, EventQuery, Position
from petstore.core.keys import Caller
from petstore.core.pets import NewPet
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.windows import limits_of

REX = NewPet("Rex", 1)
CALLER = Caller(1, 1, limits_of(1, 1), plan="business")
LONG = 120.0
QUERY = EventQuery(20, 1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = backend_for(f"sqlite:///{tmp_path}/shop.db").open(ManualClock())
    yield opened
    await opened.close()


@pytest.fixture
async def waits(store: Store) -> AsyncIterator[Waits]:
    opened = Waits(store.events)
    store.on_commit(opened.committed.set)
    yield opened
    await opened.close()


async def ages() -> None:
    """A client that stays."""
    await asyncio.Event().wait()


@pytest.fixture
async def page(store: Store) -> EventPage:
    """The current end, from which on they wait."""
    return await store.events.page(QUERY)


async def begin(waits: Waits, page: EventPage, query: EventQuery = QUERY) -> asyncio.Task[EventPage]:
    waiting = asyncio.ensure_future(waits.wait(CALLER, query, page, LONG, ages()))
    await asyncio.sleep(0)
    return waiting


async def test_an_event_between_the_read_and_the_wait_is_not_missed(
    store: Store, waits: Waits, page: EventPage
) -> None:
    """The poll may pass it, on behalf of others, before it knows of this waiter."""
    other = await begin(waits, page, EventQuery(20, 1, frozenset({"key.revoked"})))
    await store.pets.add(REX, ACTOR)
    await until(lambda: waits._position > page.after.position)
    late = await begin(waits, page)
    assert [event.type for event in (await late).events] == ["pet.created"]
    assert not other.done()
    other.cancel()


async def test_a_bookmark_of_a_time_to_come_holds_nobody_up(
    store: Store, waits: Waits, page: EventPage
) -> None:
    """One that a client made up, or from before a copied file was put back: others wait as before it."""
    reads, read = 0, store.events.page

    async def counted(query: EventQuery) -> EventPage:
        nonlocal reads
        reads += 1
        assert reads < 100
        return await read(query)

    store.events.page = counted  # type: ignore[method-assign]
    far = Bookmark(page.after.data_set, Position(2**63, 2**63 - 1))
    ahead = await begin(waits, replace(page, after=far))
    behind = await begin(waits, page)
    await until(lambda: waits._position == page.after.position)
    await store.pets.add(REX, ACTOR)
    assert [event.type for event in (await behind).events] == ["pet.created"]
    with pytest.raises(EventsGone):
        await ahead


async def test_a_commit_during_a_pause_is_looked_for_after_it(
    store: Store, waits: Waits, page: EventPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait finds a commit during a pause right after it, not at the next poll, which is too late here."""
    monkeypatch.setattr(waiting_requests, "POLL_SECONDS", LONG)
    other = await begin(waits, page, EventQuery(20, 1, frozenset({"key.revoked"})))
    for _ in range(3):
        waiting = await begin(waits, page)
        await store.pets.add(REX, ACTOR)
        async with asyncio.timeout(PATIENCE_SECONDS):
            page = await waiting
        assert len(page.events) == 1
    other.cancel()


async def test_an_end_answers_who_waits(store: Store, waits: Waits, page: EventPage) -> None:
    """A request that begins to wait later is answered too: a drain still takes requests."""
    waiting = await begin(waits, page)
    waits.end()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert [await waiting, await (await begin(waits, page))] == [page] * 2
    assert len(waits) == 0


async def test_an_outage_of_the_store_ends_no_wait(
    store: Store, waits: Waits, page: EventPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll goes on when the store answers again."""
    polls: list[Position] = []

    async def fails(after: Position) -> EntrySummary:
        polls.append(after)
        raise StoreUnavailable("It is gone.")

    with monkeypatch.context() as away:
        away.setattr(store.events, "summary_after", fails)
        waiting = await begin(waits, page)
        await store.pets.add(REX, ACTOR)
        await until(lambda: len(polls) > 1)
        assert not waiting.done()
    assert [event.type for event in (await waiting).events] == ["pet.created"]


async def test_an_unexpected_error_leaves_nobody_waiting(
    store: Store, waits: Waits, page: EventPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have an empty answer; the next one that waits begins a new poll."""

    async def fails(_: Position) -> EntrySummary:
        raise LookupError("a fault in the program")

    with monkeypatch.context() as broken:
        broken.setattr(store.events, "summary_after", fails)
        waiting = await begin(waits, page)
        polling = waits._polling
        assert polling is not None
        assert await waiting == page
        assert isinstance(polling.exception(), LookupError)
    waiting = await begin(waits, page)
    await store.pets.add(REX, ACTOR)
    assert [event.type for event in (await waiting).events] == ["pet.created"]


async def test_nobody_looks_while_nobody_waits(store: Store, waits: Waits, page: EventPage) -> None:
    """An idle service costs nothing."""
    waiting = await begin(waits, page)
    await store.pets.add(REX, ACTOR)
    await waiting
    await until(lambda: waits._polling is None)
