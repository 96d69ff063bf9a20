"""What staging holds: filled with a cut of production, of which only listed columns pass."""

from __future__ import annotations

import pytest

from petstore.core.errors import Conflict, EventsGone
from petstore.core.events import EventQuery
from petstore.core.limits.plans import FREE, PRO
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, Pet, PetStatus
from petstore.core.staging import Content, seeded
from petstore.core.webhooks import NewWebhook
from petstore.storage.store import Store
from petstore.transactions.rows import TABLES
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.journal import ACTOR

PRODUCTION = Content(
    pets=[(7, "Rex", 1, "available"), (9, "Mia", 2, "sold")],
    categories=[(1, "Dogs")],
    accounts=[("shop", "pro", 300, 10_000), ("other", "free", 60, 1_000)],
)


async def staging_at_work(store: Store) -> int:
    """Staging with an account of its own, a key, a webhook, an animal and an order; the key."""
    await store.accounts.add("shop", FREE, ACTOR)
    key = (await store.keys.issue("shop", "test", ACTOR)).record
    await store.webhooks.create(1, key.id, NewWebhook("https://shop.example/hook"), "secrets", ACTOR)
    for _ in range(12):
        await store.pets.add(NewPet("Own", 3), ACTOR)
    await store.orders.place(1, NewOrder(12), ACTOR)
    return key.id


@through_pgbouncer_too
async def test_what_is_replaced_and_what_stays(store: Store) -> None:
    """Animals and names come with production's identifiers, orders go; the account gets the plan of its
    namesake, and its key and webhook stay. No identifier is given out a second time."""
    key_id = await staging_at_work(store)
    await store.staging.fill(PRODUCTION, ACTOR)
    found = [await store.pets.get_or_none(pet_id) for pet_id in (7, 9, 12)]
    assert found == [Pet(7, "Rex", 1, PetStatus.AVAILABLE), Pet(9, "Mia", 2, PetStatus.SOLD), None]
    assert [category.name for category in await store.categories.all()] == ["Dogs"]
    assert [(account.name, account.plan.name) for account in await store.accounts.all()] == [
        ("shop", "pro"),
        ("other", "free"),
    ]
    assert (await store.keys.get(key_id)).account_id == 1
    assert len(await store.webhooks.of_account(1)) == 1
    with pytest.raises(Conflict):  # the order of animal 12 is gone with it
        await store.orders.place(1, NewOrder(12), ACTOR)
    assert (await store.pets.add(NewPet("New", 1), ACTOR)).pet.id == 13


async def test_followers_list_the_animals_anew(store: Store) -> None:
    """A bookmark from before ends, and so does a walk from the first event."""
    await staging_at_work(store)
    bookmark = await store.events.newest()
    await store.staging.fill(PRODUCTION, ACTOR)
    for after in (bookmark, None):
        with pytest.raises(EventsGone):
            await store.events.page(EventQuery(100, 1, after=after))


async def test_production_is_never_filled(store: Store) -> None:
    """Production is never filled, even unstamped: a key for production is enough. Nothing changes."""
    await store.accounts.add("shop", FREE, ACTOR)
    await store.keys.issue("shop", "live", ACTOR)
    await store.pets.add(NewPet("Real", 1), ACTOR)
    with pytest.raises(Conflict) as caught:
        await store.staging.fill(PRODUCTION, ACTOR)
    assert "keys for production" in caught.value.message
    pet = await store.pets.get_or_none(1)
    assert pet is not None
    assert pet.name == "Real"


async def test_only_listed_columns_pass(backend: SharedData, store: Store) -> None:
    """Every text in every table of production but the listed columns stays there: notes, labels, addresses,
    contacts, people, digests, and what a later column holds."""
    await store.accounts.add("shop", PRO, ACTOR, addresses=["private@example.com"])
    await store.keys.issue("shop", "live", ACTOR, label="private label")
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await store.categories.name(1, "Dogs", ACTOR)
    cut = await store.staging.cut(10)
    assert cut == Content([(1, "Rex", 1, "available")], [(1, "Dogs")], [("shop", "pro", 300, 10_000)])
    texts = {str(value) for rows in (cut.pets, cut.categories, cut.accounts) for row in rows for value in row}
    for table in TABLES:
        for row in backend.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}"):
            if table.name not in ("pets", "categories", "accounts"):
                assert not {value for value in row if isinstance(value, str) and len(value) > 6} & texts


async def test_the_newest_animals_pass_and_closed_accounts_do_not(store: Store) -> None:
    """A cut has at most as many animals as asked for, the newest ones, and no account that is closed."""
    for name in ("one", "two", "three"):
        await store.pets.add(NewPet(name, 1), ACTOR)
    await store.accounts.add("gone", FREE, ACTOR)
    await store.accounts.close("gone", ACTOR)
    cut = await store.staging.cut(2)
    assert [row[1] for row in cut.pets] == ["two", "three"]
    assert cut.accounts == []


def test_a_seed_makes_the_same_animals() -> None:
    """Others for another seed; each is a whole animal in a category with a name."""
    assert seeded(1, 250) == seeded(1, 250) != seeded(2, 250)
    made = seeded(1, 250)
    assert len(made.pets) == 250
    assert {row[2] for row in made.pets} == {row[0] for row in made.categories}
