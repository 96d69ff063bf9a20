"""The pages of one animal: show, change, remove; of two editors, the second is told."""

from __future__ import annotations

import pytest

from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, Pet, PetChange, PetStatus
from tests.support.console import Visitor
from tests.support.journal import ACTOR, entries, written
from tests.support.service import Shop

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD
REX = Pet(1, "Rex", 1, AVAILABLE)


@pytest.fixture(autouse=True)
async def rex(shop: Shop) -> None:
    """Animal 1, in a category with a name."""
    await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
    await shop.store.categories.name(1, "Dogs", ACTOR)


class TestShown:
    """What everybody sees."""

    async def test_the_animal_and_what_happened_to_it(self, shop: Shop, viewer: Visitor) -> None:
        """Who, from what, to what; the newest first. No button for a viewer."""
        await shop.store.pets.change(1, PetChange("Mia", 2, SOLD), "cli:anna")
        shown = await viewer.get("pets/1")
        assert "Name Mia Category 2 Status sold Open order none" in shown.text
        changes = "name: Rex → Mia category: Dogs → 2 status: available → sold"
        assert f"anna command line Animal changed {changes}" in shown.text
        assert "tests command line Animal added name: Rex category: Dogs status: available" in shown.text
        assert [form.buttons for form in shown.forms] == [["Sign out"]]
        assert "Remove" not in shown.links

    async def test_its_open_order_is_linked(self, shop: Shop, viewer: Visitor) -> None:
        """The one that holds it."""
        await shop.store.orders.place(1, NewOrder(1), ACTOR)
        assert (await viewer.get("pets/1")).links["Order 1"].endswith("console/orders/1")


async def test_a_viewer_sees_no_link_to_a_form(viewer: Visitor) -> None:
    """Nor could they use it; see test_walk.py."""
    assert "Add an animal" not in (await viewer.get("pets")).links


class TestChange:
    """The form on an animal's page."""

    async def test_what_was_typed_is_saved(self, shop: Shop, staff: Visitor) -> None:
        """Under the name of who did it; a category by its name."""
        await shop.store.categories.name(-5, "Cats", ACTOR)
        shown = await staff.get("pets/1")
        shown = await staff.submit(shown, "pets/1", name=" Mia ", category="cats", status="sold")
        assert shown.text.count("Saved.") == 1
        assert await shop.store.pets.get(1) == Pet(1, " Mia ", -5, SOLD)
        told = [(entry.actor, entry.type) for entry in await entries(shop.store, "pet:1")]
        assert ("console:a-staff", "pet.changed") in told

    async def test_nothing_changed_is_no_change(self, shop: Shop, staff: Visitor) -> None:
        """No entry in the journal."""
        before = await written(shop.store)
        shown = await staff.submit(await staff.get("pets/1"), "pets/1")
        assert "Nothing was changed." in shown.text
        assert await written(shop.store) == before

    async def test_only_allowed_moves_are_offered(self, shop: Shop, staff: Visitor) -> None:
        """And the state of now, which is chosen."""
        every = ["available", "pending", "sold"]
        for status, offered in ((AVAILABLE, every), (PENDING, every), (SOLD, ["available", "sold"])):
            await shop.store.pets.change(1, PetChange(status=status), ACTOR)
            form = (await staff.get("pets/1")).form("pets/1")
            assert (form.choices["status"], form.fields["status"]) == (offered, status.value)

    async def test_another_move_is_refused_as_by_the_interface(self, shop: Shop, staff: Visitor) -> None:
        """In the same words; what was typed stays in the form."""
        await shop.store.pets.change(1, PetChange(status=SOLD), ACTOR)
        shown = await staff.get("pets/1")
        shown = await staff.submit(shown, "pets/1", name="Mia", status="pending")
        assert shown.status == 409
        assert (await shop.patch(1, {"status": "pending"})).json()["message"] in shown.text
        assert shown.form("pets/1").fields["name"] == "Mia"
        assert (await shop.store.pets.get(1)).name == "Rex"

    async def test_an_open_order_decides_the_status(self, shop: Shop, staff: Visitor) -> None:
        """The page names it and offers no other; sent nevertheless, it is refused in the interface's words.
        The name can change."""
        await shop.store.orders.place(1, NewOrder(1), ACTOR)
        held = await staff.get("pets/1")
        assert "status" not in held.form("pets/1").fields
        assert "Order 1 holds this animal" in held.text
        sent = {**held.form("pets/1").fields, "status": "sold"}
        refused = await staff.post("pets/1", sent)
        assert refused.status == 409
        assert (await shop.patch(1, {"status": "sold"})).json()["message"] in refused.text
        assert "Status: pending. Order 1 holds" in refused.text
        saved = await staff.submit(held, "pets/1", name="Mia")
        assert "Saved." in saved.text
        assert await shop.store.pets.get(1) == Pet(1, "Mia", 1, PENDING)

    async def test_a_category_that_was_not_touched_stays(self, shop: Shop, staff: Visitor) -> None:
        """Whatever names categories got since the form was made."""
        shown = await staff.get("pets/1")
        await shop.store.categories.name(1, "Hounds", ACTOR)
        await shop.store.categories.name(2, "Dogs", ACTOR)
        shown = await staff.submit(shown, "pets/1", name="")
        assert (shown.status, shown.form("pets/1").fields["category"]) == (400, "Hounds")
        await staff.submit(shown, "pets/1", name="Mia")
        assert await shop.store.pets.get(1) == Pet(1, "Mia", 1, AVAILABLE)


class TestTwoEditors:
    """The second is told what the first one did."""

    async def test_the_second_sees_it_beside_what_they_typed(self, shop: Shop, staff: Visitor) -> None:
        """By whom and when; nothing of theirs is saved. What happened before they began is not told."""
        shown = await staff.get("pets/1")
        shop.clock.advance(60)
        await shop.store.pets.change(1, PetChange("Max", status=SOLD), "console:ben")
        shown = await staff.submit(shown, "pets/1", name="Mia")
        assert shown.status == 409
        assert (
            "08:01:30 UTC ben console Animal changed name: Rex → Max status: available → sold" in shown.text
        )
        assert "Animal added" not in shown.text
        assert "Name Max Mia Category Dogs not changed Status sold not changed" in shown.text
        assert await shop.store.pets.get(1) == Pet(1, "Max", 1, SOLD)

    async def test_they_can_save_theirs_over_it(self, shop: Shop, staff: Visitor) -> None:
        """Only what they changed themselves: the rest stays as the first one left it."""
        shown = await staff.get("pets/1")
        await shop.store.pets.change(1, PetChange("Max", 7, SOLD), "console:ben")
        shown = await staff.submit(shown, "pets/1", name="Mia")
        fields = shown.form("pets/1").fields
        assert [fields[name] for name in ("name", "category", "status")] == ["Mia", "7", "sold"]
        shown = await staff.submit(shown, "pets/1")
        assert "Saved." in shown.text
        assert await shop.store.pets.get(1) == Pet(1, "Mia", 7, SOLD)

    async def test_they_can_drop_theirs(self, shop: Shop, staff: Visitor) -> None:
        """A link leads to the animal as it is."""
        shown = await staff.get("pets/1")
        await shop.store.pets.change(1, PetChange("Max"), "console:ben")
        shown = await staff.submit(shown, "pets/1", name="Mia")
        dropped = await staff.get(shown.links["Drop mine"].partition("console/")[2])
        assert dropped.form("pets/1").fields["name"] == "Max"

    async def test_a_third_change_is_told_again(self, shop: Shop, staff: Visitor) -> None:
        """That one alone."""
        shown = await staff.get("pets/1")
        await shop.store.pets.change(1, PetChange("Max"), "console:ben")
        shown = await staff.submit(shown, "pets/1", name="Mia")
        await shop.store.pets.change(1, PetChange("Tom"), "console:cleo")
        shown = await staff.submit(shown, "pets/1")
        assert shown.status == 409
        assert "cleo console Animal changed name: Max → Tom" in shown.text
        assert "ben console" not in shown.text

    async def test_a_move_that_is_not_allowed_any_more(self, shop: Shop, staff: Visitor) -> None:
        """Is named, and the form has the state of now."""
        shown = await staff.get("pets/1")
        await shop.store.pets.change(1, PetChange(status=SOLD), "console:ben")
        shown = await staff.submit(shown, "pets/1", status="pending")
        assert "It is sold now, and can't become pending." in shown.text
        assert shown.form("pets/1").fields["status"] == "sold"

    async def test_an_order_that_was_placed(self, shop: Shop, staff: Visitor) -> None:
        """It decides the status; what else was typed can be saved."""
        shown = await staff.get("pets/1")
        await shop.store.orders.place(1, NewOrder(1), "api:shop/key 1")
        shown = await staff.submit(shown, "pets/1", name="Mia", status="sold")
        assert shown.status == 409
        assert "Order 1 holds this animal" in shown.text
        assert "status" not in shown.form("pets/1").fields
        await staff.submit(shown, "pets/1")
        assert await shop.store.pets.get(1) == Pet(1, "Mia", 1, PENDING)

    async def test_an_animal_that_was_removed(self, shop: Shop, staff: Visitor) -> None:
        """By whom and when; its history stays."""
        shown = await staff.get("pets/1")
        asked = await staff.get("pets/1/remove")
        await shop.store.pets.remove(1, "console:ben")
        for gone in (
            await staff.submit(shown, "pets/1", name="Mia"),
            await staff.submit(asked, "pets/1/remove"),
            await staff.get("pets/1"),
        ):
            assert gone.status == 404
            assert "There is no animal 1 any more: ben removed it on 2027-01-15 08:00:30 UTC." in gone.text
            assert "Animal added name: Rex" in gone.text


class TestRemove:
    """Asked on a page of its own."""

    async def test_it_shows_what_it_removes_and_then_does(self, shop: Shop, staff: Visitor) -> None:
        """The page of animals says so, once."""
        asked = await staff.get("pets/1/remove")
        assert "This can't be undone" in asked.text
        assert "Rex" in asked.text
        assert await shop.store.pets.get(1) == REX
        shown = await staff.submit(asked, "pets/1/remove")
        assert "Animal 1 is removed. Animals" in shown.text
        assert await shop.store.pets.get(1) is None
        assert "is removed" not in (await staff.get("pets")).text

    async def test_not_while_an_order_holds_it(self, shop: Shop, staff: Visitor) -> None:
        """The page names the order and has no button; one from before is refused in the interface's words."""
        asked = await staff.get("pets/1/remove")
        await shop.store.orders.place(1, NewOrder(1), ACTOR)
        held = await staff.get("pets/1/remove")
        assert held.links["Order 1"].endswith("console/orders/1")
        assert [form.buttons for form in held.forms] == [["Sign out"]]
        refused = await staff.submit(asked, "pets/1/remove")
        assert refused.status == 409
        removal = await shop.ask("DELETE", "/v1/pets/1")
        assert removal.json()["message"] in refused.text
