"""The form of a new animal: what it adds, and that it adds it once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

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


@pytest.mark.parametrize("typed", [{"name": ""}, {"category": "Dgos"}, {"status": "gone"}], ids=str)
async def test_a_fault_keeps_what_was_typed(shop: Shop, staff: Visitor, typed: dict[str, Any]) -> None:
    """With 400 beside the field; mended, the same form adds one animal."""
    shown = await staff.get("pets/new")
    shown = await staff.submit(shown, "pets/new", **{"name": "Mia", "category": "1", **typed})
    assert shown.status == 400
    for name, value in {"name": "Mia", "category": "1", **typed}.items():
        assert name == "status" or shown.form("pets/new").fields[name] == value
    await staff.submit(shown, "pets/new", name="Mia", category="1", status="available")
    assert len(await all_pets(shop)) == 1


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

    async def test_a_form_of_yesterday_asks_first(self, shop: Shop, staff: Visitor) -> None:
        """That it was used is known for 24 hours: what was typed is there again, for another try."""
        form = await staff.get("pets/new")
        for _ in range(4):
            shop.clock.advance(6 * 3_600)
            await staff.get()  # the session goes on
        shown = await staff.submit(form, "pets/new", name="Mia", category="1")
        assert shown.status == 409, shown.text
        assert "This form has expired." in shown.text
        assert await all_pets(shop) == []
        await staff.submit(shown, "pets/new")
        assert [pet.name for pet in await all_pets(shop)] == ["Mia"]

    async def test_two_forms_add_two(self, shop: Shop, staff: Visitor) -> None:
        """Of the same name and all."""
        for _ in range(2):
            await staff.submit(await staff.get("pets/new"), "pets/new", name="Mia", category="1")
        assert len(await all_pets(shop)) == 2

    @pytest.mark.parametrize("key", [None, "", "x" * 22, f"{0:013}.{'x' * 21}", f"{0:013}.{'x' * 21}\n"])
    async def test_a_form_without_its_key(self, shop: Shop, staff: Visitor, key: str | None) -> None:
        """Is refused: nothing would keep it from adding twice."""
        fields = {**(await staff.get("pets/new")).form("pets/new").fields, "name": "Mia", "category": "1"}
        del fields["once"]
        shown = await staff.post("pets/new", fields if key is None else {**fields, "once": key})
        assert shown.status == 400
        assert await all_pets(shop) == []


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
