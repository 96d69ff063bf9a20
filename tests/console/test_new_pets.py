"""The form of a new animal: what it adds, and that it adds it once."""

from __future__ import annotations

import asyncio

from petstore.core.pets import NewPet, PageQuery, Pet, PetStatus
from tests.support.console import Visitor
from tests.support.journal import ACTOR, entries
from tests.support.service import Shop


async def all_pets(shop: Shop) -> list[Pet]:
    page = await shop.store.pets.page(PageQuery(100))
    pets: list[Pet] = page.pets
    return pets


async def test_it_adds_an_animal(shop: Shop, staff: Visitor) -> None:
    """In any state, under the name of who did it; its page says so."""
    shown = await staff.get("pets/new")
    shown = await staff.submit(shown, "pets/new", name="Mia", category="-7", status="sold")
    assert shown.address == "/console/pets/1"
    assert "Animal 1 is added." in shown.text
    assert await all_pets(shop) == [Pet(1, "Mia", -7, PetStatus.SOLD)]
    assert [entry.actor for entry in await entries(shop.store, "pet:1")] == ["console:a-staff"]


async def test_then_another_one(shop: Shop, staff: Visitor) -> None:
    """The next form has the same category, and another key."""
    await shop.store.categories.name(3, "Dogs", ACTOR)
    first = await staff.get("pets/new")
    fields = {**first.form("pets/new").fields, "name": "Mia", "category": "Dogs", "then": "another"}
    second = await staff.post("pets/new", fields)
    assert "Animal 1 is added." in second.text
    form = second.form("pets/new")
    assert (form.fields["category"], form.fields["name"]) == ("Dogs", "")
    await staff.submit(second, "pets/new", name="Mia")
    assert [(pet.name, pet.category_id) for pet in await all_pets(shop)] == [("Mia", 3), ("Mia", 3)]


class TestTwice:
    """A double click, a reload, a page that was gone back to."""

    async def test_one_after_the_other(self, shop: Shop, staff: Visitor) -> None:
        """Both lead to the one animal; a restart forgets nothing."""
        form = await staff.get("pets/new")
        for told in ("Animal 1 is added.", "Animal 1 was added already."):
            shown = await staff.submit(form, "pets/new", name="Mia", category="1")
            assert shown.address == "/console/pets/1", shown.text
            assert told in shown.text
            await shop.restart()
        assert len(await all_pets(shop)) == 1

    async def test_at_once(self, shop: Shop, staff: Visitor) -> None:
        """Each answer is the animal's page."""
        form = await staff.get("pets/new")
        twice = [staff.submit(form, "pets/new", name="Mia", category="1") for _ in range(5)]
        assert {shown.address for shown in await asyncio.gather(*twice)} == {"/console/pets/1"}
        assert len(await all_pets(shop)) == 1

    async def test_another_animal_asks_first(self, shop: Shop, staff: Visitor) -> None:
        """The form was gone back to and changed: its next try adds that one too."""
        form = await staff.get("pets/new")
        await staff.submit(form, "pets/new", name="Mia", category="1")
        shown = await staff.submit(form, "pets/new", name="Tom", category="1")
        assert shown.status == 409
        assert "send it once more" in shown.text
        assert len(await all_pets(shop)) == 1
        await staff.submit(shown, "pets/new")
        assert [pet.name for pet in await all_pets(shop)] == ["Mia", "Tom"]


async def test_a_category_that_does_not_say_which(shop: Shop, staff: Visitor) -> None:
    """Two have the name, so it takes the number; a form of an animal there has the number too."""
    for category_id in (5, 6):
        await shop.store.categories.name(category_id, "Dogs", ACTOR)
    shown = await staff.get("pets/new")
    shown = await staff.submit(shown, "pets/new", name="Mia", category="dogs")
    assert "Several categories have this name; write the number: 5 or 6." in shown.text
    await staff.submit(shown, "pets/new", category="6")
    assert (await staff.get("pets/1")).form("pets/1").fields["category"] == "6"


async def test_a_name_of_digits_is_not_taken_for_a_number(shop: Shop, staff: Visitor) -> None:
    """The form of an animal in a category called 7 has that category's number, and saves it so."""
    await shop.store.categories.name(3, "7", ACTOR)
    await shop.store.pets.add(NewPet("Mia", 3), ACTOR)
    shown = await staff.get("pets/1")
    assert shown.form("pets/1").fields["category"] == "3"
    await staff.submit(shown, "pets/1", name="Tom")
    assert (await shop.store.pets.get(1)).category_id == 3
