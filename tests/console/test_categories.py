"""The pages of categories: name one, rename it, take the name away."""

from __future__ import annotations

import asyncio

import pytest

from petstore.core.categories import CATEGORIES_MAX, Category
from petstore.core.pets import NewPet
from tests.console.conftest import assert_refused, follow
from tests.support.backends import execute_in_file
from tests.support.console import Visitor
from tests.support.journal import ACTOR, entries
from tests.support.service import Shop
from tests.support.waiting import PATIENCE_SECONDS

DOGS = Category(1, "Dogs")


@pytest.fixture(autouse=True)
async def dogs(shop: Shop) -> None:
    """Category 1 has a name."""
    await shop.store.categories.name(1, "Dogs", ACTOR)


async def test_everybody_sees_them(viewer: Visitor) -> None:
    """Each has a link to its animals; its number leads to what happened to it. A viewer has no form."""
    shown = await viewer.get("categories")
    assert "Number Name Animals 1 Dogs" in shown.text
    assert shown.links["Dogs"].endswith("pets?category=1")
    assert [form.buttons for form in shown.forms] == [[], ["Sign out"]]
    assert "Rename" not in shown.links
    shown = await follow(viewer, shown, "1")
    assert "Dogs · Category 1" in shown.text
    assert "Category named name: Dogs" in shown.text
    assert "Remove the name" not in shown.links
    assert [form.action for form in shown.forms if form.action.endswith("categories/1")] == []


async def test_one_gets_a_name(shop: Shop, staff: Visitor) -> None:
    """The next free number is proposed; any int64 can be."""
    shown = await staff.get("categories")
    assert shown.form("categories").fields["id"] == "2"
    shown = await staff.submit(shown, "categories", name="Cats")
    assert "Category 2 has its name." in shown.text
    shown = await staff.submit(shown, "categories", id=2**63 - 1, name="Fish")
    assert shown.form("categories").fields["id"] == ""
    await staff.submit(shown, "categories", id=-(2**63), name="Birds")
    assert [category.name for category in await shop.store.categories.all()] == [
        "Birds",
        "Dogs",
        "Cats",
        "Fish",
    ]
    assert (await entries(shop.store, "category:2"))[0].actor == "console:a-staff"


async def test_no_more_than_there_is_room_for(shop: Shop, staff: Visitor) -> None:
    """The page says what to do; all of them are on it."""
    values = ", ".join(f"({number}, 'c{number}')" for number in range(2, CATEGORIES_MAX + 1))
    execute_in_file(shop.path, f"INSERT INTO categories (id, name) VALUES {values}")
    shown = await staff.fill("categories", "categories", name="Cats")
    assert_refused(shown, 409, "At most 1,000 categories can have names; take one away first.")
    assert "c1000" in shown.text


async def test_each_has_its_number_of_animals(shop: Shop, viewer: Visitor) -> None:
    """Categories without a name have it too: the list of animals can be narrowed down to them."""
    for category in (1, 7, 7):
        await shop.store.pets.add(NewPet("Rex", category), ACTOR)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "1 Dogs 1 7 no name 2" not in (shown := await viewer.get("categories")).text:
            pass
    assert shown.links["no name"].endswith("pets?category=7")
    assert "7" in (await viewer.get("pets")).form("pets").choices["category"]


async def test_two_of_one_name_are_shown_for_repair(shop: Shop, staff: Visitor) -> None:
    """An earlier release took them; no other gets the name, and the form says whose it is."""
    execute_in_file(shop.path, "INSERT INTO categories VALUES (2, 'dogs')")
    assert (await staff.get("categories")).text.count("Another category has this name") == 2
    shown = await staff.fill("categories", "categories", id=3, name="DOGS")
    assert_refused(shown, 409, "Category 1 is called Dogs already.")
    shown = await staff.fill("categories/1", "categories/1", name="DOGS")
    assert_refused(shown, 409, "Category 2 is called dogs already.")


class TestRename:
    """Another name."""

    async def test_a_changed_name_is_saved_and_shown(self, shop: Shop, staff: Visitor) -> None:
        """The list has it at once."""
        shown = await staff.get("categories")
        shown = await follow(staff, shown, "Rename")
        shown = await staff.submit(shown, "categories/1", name="Hounds")
        assert "Saved." in shown.text
        assert await shop.store.categories.all() == [Category(1, "Hounds")]

    async def test_the_second_of_two_is_told_of_the_first(self, shop: Shop, staff: Visitor) -> None:
        """Who gave which name; nothing is replaced before it is saved once more."""
        shown = await staff.get("categories/1")
        await shop.store.categories.name(1, "Puppies", "console:anna")
        shown = await staff.submit(shown, "categories/1", name="Hounds")
        assert_refused(shown, 409, "Category 1 is called Puppies now.")
        assert "anna console Category named name: Dogs → Puppies" in shown.text
        assert shown.form("categories/1").fields["name"] == "Hounds"
        assert await shop.store.categories.all() == [Category(1, "Puppies")]
        await staff.submit(shown, "categories/1")
        assert await shop.store.categories.all() == [Category(1, "Hounds")]


class TestTakeAway:
    """No name any more."""

    async def test_a_name_is_taken_away_after_a_question(self, shop: Shop, staff: Visitor) -> None:
        """Then the list has the category's number alone."""
        shown = await staff.get("categories/1")
        asked = await follow(staff, shown, "Remove the name")
        assert "Its animals stay in it" in asked.text
        shown = await staff.submit(asked, "categories/1/remove")
        assert "The name of category 1 was removed." in shown.text
        assert await shop.store.categories.all() == []
        assert (await staff.submit(asked, "categories/1/remove")).status == 404

    async def test_another_name_than_the_one_shown(self, shop: Shop, staff: Visitor) -> None:
        """Is not taken away: the question is asked again, about the name of now."""
        asked = await staff.get("categories/1/remove")
        await shop.store.categories.name(1, "Puppies", ACTOR)
        asked = await staff.submit(asked, "categories/1/remove")
        assert_refused(asked, 409, "Category 1 is called Puppies now.")
        await staff.submit(asked, "categories/1/remove")
        assert await shop.store.categories.all() == []
