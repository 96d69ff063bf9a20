"""Events in both stores: which, in which order, for whom, and from which bookmark on."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from petstore.core.errors import Conflict, EventsGone, PetNotFound
from petstore.core.events import BY_ENTRY, Bookmark, Event, EventQuery, Position, event_of, read_types
from petstore.core.journal import JournalQuery
from petstore.core.limits.plans import FREE, PRO
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, PetChange, PetPage, PetQuery, PetStatus
from petstore.storage.store import Store
from petstore.transactions import events as transactions
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.journal import ACTOR, followed, lose
from tests.support.waiting import PATIENCE_SECONDS

REX = NewPet("Rex", 1)
STATUSES = tuple(PetStatus)


async def settled(store: Store) -> Bookmark:
    """The bookmark after all that is written; PostgreSQL's other transactions may hold it up."""
    newest = (await store.journal.page(JournalQuery(1))).entries
    async with asyncio.timeout(PATIENCE_SECONDS):
        while newest and (await store.events.newest()).position.id < newest[0].id:
            pass
    return await store.events.newest()


async def all_after(store: Store, query: EventQuery) -> list[Event]:
    """All events after a bookmark, read in pages."""
    await settled(store)
    found: list[Event] = []
    while True:
        page = await store.events.page(query)
        found += page.events
        if not page.is_behind:
            return found
        query = replace(query, after=page.after)


def data_of(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.type, event.data) for event in events]


async def changes_everything(store: Store) -> None:
    """Two accounts; the first has a key and orders."""
    await store.accounts.add("shop", FREE, ACTOR)
    await store.accounts.add("other", FREE, ACTOR)
    await store.keys.issue("shop", "test", ACTOR, label="till")
    await store.pets.add(REX, ACTOR)
    await store.pets.change(1, PetChange(name="Max"), ACTOR)
    await store.categories.name(1, "Dogs", ACTOR)
    await store.categories.name(1, "Cats", ACTOR)
    await store.categories.unname(1, ACTOR)
    await store.orders.place(1, NewOrder(1), ACTOR)
    await store.orders.change(1, ACTOR, ship_date_ms=0)
    await store.orders.change(1, ACTOR, ship_date_ms=None)
    await store.orders.change(1, ACTOR, status=OrderStatus.CANCELLED)
    await store.pets.remove(1, ACTOR)
    await store.accounts.set_plan("shop", PRO, ACTOR)
    await store.accounts.rename("shop", "store", ACTOR)
    await store.keys.rotate(1, "test", 0, ACTOR)
    await store.keys.pardon(1, ACTOR)
    await store.keys.revoke(1, ACTOR)
    await store.accounts.suspend("store", ACTOR)
    await store.accounts.resume("store", ACTOR)


SHARED: list[tuple[str, dict[str, Any]]] = [
    ("pet.created", {"id": 1, "name": "Rex", "categoryId": 1, "status": "available"}),
    ("pet.updated", {"id": 1, "name": "Max", "previous": {"name": "Rex"}}),
    ("category.updated", {"id": 1, "name": "Dogs", "previous": {"name": None}}),
    ("category.updated", {"id": 1, "name": "Cats", "previous": {"name": "Dogs"}}),
    ("category.updated", {"id": 1, "name": None, "previous": {"name": "Cats"}}),
    ("pet.updated", {"id": 1, "status": "pending", "previous": {"status": "available"}}),
    ("pet.updated", {"id": 1, "status": "available", "previous": {"status": "pending"}}),
    ("pet.deleted", {"id": 1, "previous": {"name": "Max", "categoryId": 1, "status": "available"}}),
]
SHIP_DATE = "1970-01-01T00:00:00.000Z"
OWN: list[tuple[str, dict[str, Any]]] = [
    ("key.issued", {"id": 1, "label": "till", "access": "write", "expiresAt": None}),
    ("order.created", {"id": 1, "petId": 1, "quantity": 1, "status": "placed", "complete": False}),
    ("order.updated", {"id": 1, "shipDate": SHIP_DATE, "previous": {"shipDate": None}}),
    ("order.updated", {"id": 1, "shipDate": None, "previous": {"shipDate": SHIP_DATE}}),
    ("order.updated", {"id": 1, "status": "cancelled", "previous": {"status": "placed"}}),
    (
        "account.updated",
        {
            "id": 1,
            "plan": "pro",
            "perMinute": 300,
            "perDay": 10_000,
            "previous": {"plan": "free", "perMinute": 60, "perDay": 1_000},
        },
    ),
    ("account.updated", {"id": 1, "name": "store", "previous": {"name": "shop"}}),
]


async def test_an_event_says_what_the_change_was_and_nothing_that_is_not_public(store: Store) -> None:
    """An addition has all members, a change those that changed with the former ones; null is none."""
    await changes_everything(store)
    seen = data_of(await all_after(store, EventQuery(100, 1)))
    assert [each for each in seen if each[0].startswith(("pet.", "category."))] == SHARED
    own = [each for each in seen if not each[0].startswith(("pet.", "category."))]
    assert own[: len(OWN)] == OWN
    assert [kind for kind, _ in own[len(OWN) :]] == [
        *("key.issued", "key.rotated", "key.unbanned", "key.revoked"),
        *("account.suspended", "account.resumed"),
    ]


async def test_another_account_sees_what_is_shared_and_nothing_else(store: Store) -> None:
    """I24: neither orders nor keys nor the account, whatever it asks for; the operator sees all."""
    await changes_everything(store)
    assert data_of(await all_after(store, EventQuery(100, 2))) == SHARED
    own = read_types(["order.*", "key.*", "account.*"])
    assert await all_after(store, EventQuery(100, 2, own)) == []
    everything = await all_after(store, EventQuery(100, None))
    assert len(await all_after(store, EventQuery(100, 1))) == len(everything)


async def test_a_bookmark_that_the_store_has_not_reached_is_gone(store: Store) -> None:
    """It is of a copied file or a disk that was put back by hand: what comes next would be missed."""
    await store.pets.add(REX, ACTOR)
    end = await settled(store)
    assert (await followed(store, end)).events == []
    ahead = replace(end, position=Position(2**62, end.position.id + 1))
    with pytest.raises(EventsGone, match="before it was restored"):
        await followed(store, ahead)


async def test_every_event_comes_once_in_pages_of_any_length(store: Store) -> None:
    """I23: the same events, with the same identities; after the last one there is nothing."""
    await changes_everything(store)
    events = await all_after(store, EventQuery(100, 1))
    assert len({event.id for event in events}) == len(events)
    end = await settled(store)
    assert (await followed(store, end)).events == []
    await store.pets.add(REX, ACTOR)
    for limit in (1, 2, 7):
        *same, new = await all_after(store, EventQuery(limit, 1))
        assert (same, new.type) == (events, "pet.created")
        assert await all_after(store, EventQuery(limit, 1, after=end)) == [new]


async def test_a_search_for_rare_events_goes_on_where_it_stopped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request reads a bounded number of entries; an empty answer says that there are more."""
    monkeypatch.setattr(transactions, "ENTRIES_SCANNED_MAX", 3)
    await changes_everything(store)
    await settled(store)
    query = EventQuery(100, 1, read_types(["key.revoked"]))
    pages = 0
    while not (page := await store.events.page(query)).events:
        assert page.is_behind
        query, pages = replace(query, after=page.after), pages + 1
    assert [event.type for event in page.events] == ["key.revoked"]
    assert pages > 3


async def test_the_end_is_where_there_is_no_more(backend: SharedData) -> None:
    """It is so for what was there before the first bookmark: nobody is asked to come again for nothing."""
    store = backend.open()
    await store.pets.add(REX, ACTOR)
    first = await store.events.page(EventQuery(100, None))
    assert (len(first.events), first.is_behind) == (1, False)
    await store.pets.add(REX, ACTOR)
    await settled(store)
    again = await store.events.page(EventQuery(100, None))
    rest = await store.events.page(EventQuery(100, None, after=again.after))
    assert (len(again.events + rest.events), rest.is_behind) == (2, False)
    assert again.is_behind == bool(rest.events)


async def test_the_latest_events_are_the_last_ones_of_all(store: Store) -> None:
    """However rare, of what came with the data too; the bookmark after them leads to what comes next."""
    assert (await store.events.latest(EventQuery(1, None))).events == []
    await changes_everything(store)
    await store.events.note_restore(ACTOR)
    await store.keys.issue("other", "test", ACTOR)
    await store.pets.add(REX, ACTOR)
    await store.orders.place(2, NewOrder(2), ACTOR)
    rare = read_types(["key.revoked", "store.*"])
    for query in (EventQuery(100, None), EventQuery(100, 2), EventQuery(100, 1, rare)):
        everything = await all_after(store, query)
        for limit in (1, 2, 7, 100):
            latest = await store.events.latest(replace(query, limit=limit), 1_000)
            assert latest.events == everything[-limit:]
            assert (await followed(store, latest.after)).events == []
    await store.pets.add(REX, ACTOR)
    await settled(store)
    assert [event.type for event in (await followed(store, latest.after)).events] == ["pet.created"]


async def test_a_search_for_the_latest_events_ends(store: Store) -> None:
    """A search for the latest events ends after as many entries as it may read."""
    await changes_everything(store)
    await settled(store)
    query = EventQuery(1, None, read_types(["pet.created"]))
    assert (await store.events.latest(query, 10)).events == []
    assert len((await store.events.latest(query, 100)).events) == 1


async def test_no_more_events_are_made_than_are_latest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds for each read of the journal: a page that made nine hundred to show a hundred held up every
    request."""
    for _ in range(20):
        await store.pets.add(REX, ACTOR)
    for name in ("one", "two"):
        await store.accounts.add(name, FREE, ACTOR)
    await settled(store)
    made = Mock(wraps=event_of)
    monkeypatch.setattr("petstore.transactions.events.event_of", made)
    latest = await store.events.latest(EventQuery(5, None, read_types(["pet.*"])))
    assert [event.data["id"] for event in latest.events] == [16, 17, 18, 19, 20]
    assert made.call_count == 3 + 5


async def test_the_latest_events_begin_where_the_journal_does(backend: SharedData) -> None:
    """The first entries are not kept, or those before were recorded nowhere."""
    store = backend.open()
    for _ in range(3):
        await store.pets.add(REX, ACTOR)
    await settled(store)
    lose(backend.execute, (await followed(store, None, 2)).after.position)
    assert [event.data["id"] for event in (await store.events.latest(EventQuery(9, None))).events] == [3]


async def test_a_summary_names_the_types_and_who_sees_them(store: Store) -> None:
    """A summary names each type after the position once, with the account that sees it."""
    await store.accounts.add("shop", FREE, ACTOR)
    await store.pets.add(REX, ACTOR)
    after = (await settled(store)).position
    await store.pets.add(REX, ACTOR)
    await store.orders.place(1, NewOrder(1), ACTOR)
    end = (await settled(store)).position
    summary = await store.events.summary_after(after)
    assert summary.types_and_owners == {("pet.added", None), ("order.placed", 1), ("pet.changed", None)}
    assert summary.position == end
    assert (await store.events.summary_after(end)).types_and_owners == frozenset()


async def test_a_restored_store_continues_no_bookmark_of_before(store: Store) -> None:
    """A restored store's identities are new, and everybody is told."""
    await store.pets.add(REX, ACTOR)
    before = await settled(store)
    [first] = (await followed(store)).events
    await store.events.note_restore(ACTOR)
    with pytest.raises(EventsGone, match="restored from a copy"):
        await followed(store, before)
    created, restored = await all_after(store, EventQuery(100, None))
    assert (created.data, created.id) != (first.data, first.id)
    assert created.data == first.data
    assert (restored.type, restored.data) == ("store.restored", {})
    now = await settled(store)
    await store.pets.add(REX, ACTOR)
    assert [event.data["id"] for event in await all_after(store, EventQuery(9, None, after=now))] == [2]


async def test_a_journal_without_its_beginning_is_followed_from_now_only(backend: SharedData) -> None:
    """A journal of a store of 1.0.0, whose first events were recorded nowhere, is followed from now only."""
    store = backend.open()
    await store.pets.add(REX, ACTOR)
    now = await settled(store)
    backend.execute("UPDATE data_set SET is_whole = false")
    with pytest.raises(EventsGone, match="The first events are not kept"):
        await followed(store)
    assert (await followed(store, now)).events == []


async def test_a_bookmark_of_what_is_not_kept_is_gone(backend: SharedData) -> None:
    """One at the end of what was removed is not."""
    store = backend.open()
    for _ in range(3):
        await store.pets.add(REX, ACTOR)
    await settled(store)
    first, second, _ = [(await followed(store, None, count)).after for count in (1, 2, 3)]
    lose(backend.execute, second.position)
    with pytest.raises(EventsGone, match="not kept any more"):
        await followed(store, first)
    assert [event.data["id"] for event in (await followed(store, second)).events] == [3]


async def test_another_data_set_has_other_bookmarks(store: Store) -> None:
    """A bookmark of another data set is refused, even one that looks like this store's future."""
    with pytest.raises(EventsGone, match="another store"):
        await followed(store, Bookmark("0" * 12, Position(2**62, 2**62)))


class Mirror:
    """What a client has that follows the events."""

    def __init__(self) -> None:
        self.pets: dict[int, dict[str, Any]] = {}

    def apply(self, event: Event) -> None:
        data = {name: value for name, value in event.data.items() if name != "previous"}
        if event.type == "pet.created":
            self.pets[data["id"]] = data
        elif event.type == "pet.updated" and data["id"] in self.pets:
            self.pets[data["id"]] |= data
        elif event.type == "pet.deleted":
            self.pets.pop(data["id"], None)


def shown(page: PetPage) -> dict[int, dict[str, Any]]:
    return {
        pet.id: {"id": pet.id, "name": pet.name, "categoryId": pet.category_id, "status": pet.status.value}
        for pet in page.pets
    }


@through_pgbouncer_too
@pytest.mark.parametrize("seed", range(3))
async def test_a_mirror_that_follows_shows_what_the_store_shows(backend: SharedData, seed: int) -> None:
    """I23: of the whole journal, where nothing is changed before it is created; and by the recipe: a
    bookmark, the list page by page while others write, then the events from there on."""
    store, other = backend.open(), backend.open()
    await store.accounts.add("shop", FREE, ACTOR)
    chance = random.Random(seed)

    async def change(to: Store) -> None:
        pet_id = chance.randint(1, 12)
        status = chance.choice(STATUSES)
        try:
            match chance.randrange(5):
                case 0 | 1:
                    await to.pets.add(NewPet(f"Pet {chance.random()}", chance.randint(1, 3), status), ACTOR)
                case 2:
                    await to.pets.change(pet_id, PetChange(status=status), ACTOR)
                case 3:
                    await to.pets.remove(pet_id, ACTOR)
                case 4:
                    await to.orders.place(1, NewOrder(pet_id), ACTOR)
        except (Conflict, PetNotFound):
            pass

    for _ in range(10):
        await asyncio.gather(*(change(to) for to in (store, other)))
    recipe = Mirror()
    bookmark = await store.events.newest()
    listed = PetQuery(limit=3)
    while True:
        page = await store.pets.page(listed)
        recipe.pets |= shown(page)
        await asyncio.gather(*(change(to) for to in (store, other, store)))
        if not page.has_more:
            break
        listed = replace(listed, after_id=page.pets[-1].id)
    whole = Mirror()
    for event in await all_after(store, EventQuery(7, None)):
        if event.type in {"pet.updated", "pet.deleted"}:
            assert event.data["id"] in whole.pets, event
            for name, value in event.data["previous"].items():
                assert whole.pets[event.data["id"]][name] == value
        whole.apply(event)
    for event in await all_after(store, EventQuery(7, None, after=bookmark)):
        recipe.apply(event)
    assert whole.pets == recipe.pets == shown(await store.pets.page(PetQuery(limit=100)))


def test_every_type_of_entry_is_an_event_or_is_not_on_purpose() -> None:
    """It holds for the objects that clients see: a new type of entry about one has to say here whether it is
    hidden."""
    from tests.storage.contract.test_journal import WALK

    written = {kind for _, _, kinds in WALK for kind in kinds}
    seen = {kind.partition(".")[0] for kind in BY_ENTRY}
    assert {kind for kind in written if kind.partition(".")[0] in seen} - set(BY_ENTRY) == {
        *("account.added", "account.customer_changed"),
        *(f"account.contact_{what}" for what in ("added", "changed", "removed")),
        *(f"webhook.{what}" for what in ("added", "changed", "moved", "enabled", "rotated", "removed")),
    }
