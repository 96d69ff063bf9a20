"""The pages of animals: search, add, show, change, remove; of two editors, the second is told."""

from __future__ import annotations

import asyncio
import re

import pytest

from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, Pet, PetChange, PetQuery, PetStatus
from petstore.transactions.search import TEXTS_SCANNED_MAX
from tests.console.conftest import assert_refused, follow
from tests.support.backends import execute_in_file
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, entries, written
from tests.support.service import Shop

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD
REX = Pet(1, "Rex", 1, AVAILABLE)


@pytest.fixture
async def rex(shop: Shop) -> None:
    """Animal 1, in a category with a name."""
    await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
    await shop.store.categories.name(1, "Dogs", ACTOR)


@pytest.mark.usefixtures("rex")
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
        assert [form.buttons for form in shown.forms] == [[], ["Sign out"]]
        assert "Remove" not in shown.links
        assert "Add an animal" not in (await viewer.get("pets")).links


@pytest.mark.usefixtures("rex")
class TestChange:
    """The form on an animal's page."""

    async def test_what_was_typed_is_saved(self, shop: Shop, staff: Visitor) -> None:
        """Under the name of who did it; a category by its name."""
        await shop.store.categories.name(-5, "Cats", ACTOR)
        shown = await staff.fill("pets/1", "pets/1", name=" Mia ", category="cats", status="sold")
        assert shown.text.count("Saved.") == 1
        assert await shop.store.pets.get_or_none(1) == Pet(1, " Mia ", -5, SOLD)
        told = [(entry.actor, entry.type) for entry in await entries(shop.store, "pet:1")]
        assert ("console:a-staff", "pet.changed") in told

    async def test_nothing_changed_is_no_change(self, shop: Shop, staff: Visitor) -> None:
        """No entry in the journal."""
        before = await written(shop.store)
        shown = await staff.fill("pets/1", "pets/1")
        assert '<div class="told" role="status">Nothing was changed.' in shown.body.decode()
        assert await written(shop.store) == before

    async def test_only_allowed_moves_and_the_state_of_now_are_offered(
        self, shop: Shop, staff: Visitor
    ) -> None:
        """Staff can't choose what would be refused."""
        every = ["available", "pending", "sold"]
        for status, offered in ((AVAILABLE, every), (PENDING, every), (SOLD, ["available", "sold"])):
            await shop.store.pets.change(1, PetChange(status=status), ACTOR)
            form = (await staff.get("pets/1")).form("pets/1")
            assert (form.choices["status"], form.fields["status"]) == (offered, status.value)

    async def test_another_move_is_refused_as_by_the_interface(self, shop: Shop, staff: Visitor) -> None:
        """A wrong change of status is refused in the interface's words; what was typed stays in the form."""
        await shop.store.pets.change(1, PetChange(status=SOLD), ACTOR)
        shown = await staff.fill("pets/1", "pets/1", name="Mia", status="pending")
        assert shown.status == 409
        assert (await shop.patch(1, {"status": "pending"})).json()["message"] in shown.text
        assert shown.form("pets/1").fields["name"] == "Mia"
        assert (await shop.store.pets.get_or_none(1)).name == "Rex"

    async def test_an_open_order_decides_the_status(self, shop: Shop, staff: Visitor) -> None:
        """The page names it and offers no other; sent nevertheless, it is refused in the interface's words.
        The name can change."""
        await shop.store.orders.place(1, NewOrder(1), ACTOR)
        held = await staff.get("pets/1")
        assert "status" not in held.form("pets/1").fields
        assert "Order 1 holds this animal" in held.text
        assert held.links["Order 1"].endswith("console/orders/1")
        sent = {**held.form("pets/1").fields, "status": "sold"}
        refused = await staff.post("pets/1", sent)
        assert refused.status == 409
        assert (await shop.patch(1, {"status": "sold"})).json()["message"] in refused.text
        assert "Status: pending. Order 1 holds" in refused.text
        saved = await staff.submit(held, "pets/1", name="Mia")
        assert "Saved." in saved.text
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Mia", 1, PENDING)

    async def test_a_category_that_was_not_touched_stays(self, shop: Shop, staff: Visitor) -> None:
        """Whatever names categories got since the form was made."""
        shown = await staff.get("pets/1")
        await shop.store.categories.name(1, "Hounds", ACTOR)
        await shop.store.categories.name(2, "Dogs", ACTOR)
        shown = await staff.submit(shown, "pets/1", name="")
        assert (shown.status, shown.form("pets/1").fields["category"]) == (400, "Hounds")
        await staff.submit(shown, "pets/1", name="Mia")
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Mia", 1, AVAILABLE)


@pytest.mark.usefixtures("rex")
class TestUnusual:
    """What is allowed and seldom meant."""

    async def test_what_an_order_sold_is_asked_about(self, shop: Shop, staff: Visitor) -> None:
        """An animal sold by an order is asked about before it is available; one sold by hand is not."""
        order = (await shop.store.orders.place(1, NewOrder(1), ACTOR)).order
        for status in (OrderStatus.APPROVED, OrderStatus.DELIVERED):
            await shop.store.orders.change(order.id, ACTOR, status=status)
        renamed = await staff.fill("pets/1", "pets/1", name="Mia")
        asked = await staff.submit(renamed, "pets/1", status="available")
        said = "Order 1 sold animal 1 on 2027-01-15 08:00:30 UTC. Make it available again?"
        assert_refused(asked, 409, said)
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Mia", 1, SOLD)
        assert "Saved." in (await staff.say_yes(asked, "pets/1")).text
        by_hand = await staff.fill("pets/1", "pets/1", status="sold")
        await shop.store.pets.add(NewPet("Tom", 1, SOLD), ACTOR)
        assert "Saved." in (await staff.fill("pets/2", "pets/2", status="available")).text
        assert "Order 1 sold" in (await staff.submit(by_hand, "pets/1", status="available")).text

    async def test_pending_without_an_order_is_remarked(self, staff: Visitor) -> None:
        """It is done, and said: nothing ends it by itself."""
        remark = "No order holds it: it stays pending until somebody changes that."
        assert f"Saved. {remark}" in (await staff.fill("pets/1", "pets/1", status="pending")).text
        added = await staff.fill("pets/new", "pets/new", name="Tom", category="1", status="pending")
        assert f"Animal 2 is added. {remark}" in added.text


@pytest.mark.usefixtures("rex")
class TestPriceAndNote:
    """What staff keep of an animal."""

    async def test_they_are_kept_shown_and_recorded(self, shop: Shop, staff: Visitor) -> None:
        """A price with hundredths, a note with its lines, on the page and in the form; the list has the
        price. An empty field takes it away."""
        note = "\nShy.\n\n <b>Feed twice</b>"
        sent = note.replace("\n", "\r\n")
        shown = await staff.fill("pets/1", "pets/1", price=" 12,5\u00a0", note=sent)
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Rex", 1, AVAILABLE, 1_250, note)
        assert "price: none → 12.50 note: none → Shy. <b>Feed twice</b>" in shown.text
        assert "Price 12.50 Note Shy." in shown.text
        assert "Dogs available Mark sold animal 1 12.50" in (await staff.get("pets")).text
        fields = shown.form("pets/1").fields
        assert (fields["price"], fields["note"]) == ("12.50", note)
        assert "Nothing was changed." in (await staff.submit(shown, "pets/1")).text
        await staff.fill("pets/1", "pets/1", price="0", note="")
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Rex", 1, AVAILABLE, 0)

    async def test_two_editors_of_a_note(self, shop: Shop, staff: Visitor) -> None:
        """The second is told what the first one wrote."""
        shown = await staff.get("pets/1")
        await shop.store.pets.change(1, PetChange(note="Bites."), "console:ben")
        shown = await staff.submit(shown, "pets/1", note="Shy.")
        assert_refused(shown, 409, "Price not changed Note Bites. Shy.")
        await staff.submit(shown, "pets/1")
        assert (await shop.store.pets.get_or_none(1)).note == "Shy."

    async def test_a_long_note_is_shortened_in_lists_of_changes(self, shop: Shop, viewer: Visitor) -> None:
        """The journal keeps it whole."""
        await shop.store.pets.change(1, PetChange(note="x" * 2_000), ACTOR)
        assert f"note: none → {'x' * 255}… " in (await viewer.get("journal")).text
        assert (await entries(shop.store, "pet:1"))[-1].after == {"note": "x" * 2_000}


@pytest.mark.usefixtures("rex")
class TestTwoEditors:
    """The second is told what the first one did."""

    async def test_the_second_sees_it_beside_what_they_typed(self, shop: Shop, staff: Visitor) -> None:
        """It says by whom and when, and not what happened before they began. Nothing of theirs is saved until
        they save it over that: only what they changed themselves, the rest stays as the first one left it."""
        shown = await staff.get("pets/1")
        shop.clock.advance(60)
        await shop.store.pets.change(1, PetChange("Max", 7, SOLD), "console:ben")
        shown = await staff.submit(shown, "pets/1", name="Mia")
        told = "name: Rex → Max category: Dogs → 7 status: available → sold"
        assert_refused(shown, 409, f"08:01:30 ben console Animal changed {told}")
        assert "Animal added" not in shown.text
        assert "Name Max Mia Category 7 not changed Status sold not changed" in shown.text
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Max", 7, SOLD)
        assert shown.links["Drop mine"].endswith("console/pets/1")
        fields = shown.form("pets/1").fields
        assert [fields[name] for name in ("name", "category", "status")] == ["Mia", "7", "sold"]
        assert "Saved." in (await staff.submit(shown, "pets/1")).text
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Mia", 7, SOLD)

    async def test_a_persons_own_second_tab_is_called_that(self, shop: Shop, staff: Visitor) -> None:
        """A person's own change is not called somebody else's, unless somebody else changed it too."""
        first, second, third = [await staff.get("pets/1") for _ in range(3)]
        await staff.submit(first, "pets/1", name="Max")
        assert "You changed this animal meanwhile" in (await staff.submit(second, "pets/1", name="Mia")).text
        await shop.store.pets.change(1, PetChange("Ben"), "console:ben")
        assert "somebody else changed" in (await staff.submit(third, "pets/1", name="Mia")).text

    async def test_a_third_change_is_told_alone(self, shop: Shop, staff: Visitor) -> None:
        """The message after it speaks of no earlier one."""
        shown = await staff.get("pets/1")
        await shop.store.pets.change(1, PetChange("Max"), "console:ben")
        shown = await staff.submit(shown, "pets/1", name="Mia")
        await shop.store.pets.change(1, PetChange("Tom"), "console:cleo")
        shown = await staff.submit(shown, "pets/1")
        assert_refused(shown, 409, "cleo console Animal changed name: Max → Tom")
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
        assert_refused(shown, 409, "Order 1 holds this animal")
        assert "status" not in shown.form("pets/1").fields
        await staff.submit(shown, "pets/1")
        assert await shop.store.pets.get_or_none(1) == Pet(1, "Mia", 1, PENDING)

    async def test_an_animal_that_was_removed(self, shop: Shop, staff: Visitor) -> None:
        """The page says by whom and when; the history stays, whatever was wrong with the form."""
        shown = await staff.get("pets/1")
        asked = await staff.get("pets/1/remove")
        await shop.store.pets.remove(1, "console:ben")
        for gone in (
            await staff.submit(shown, "pets/1", name="Mia"),
            await staff.submit(shown, "pets/1", name=""),
            await staff.submit(asked, "pets/1/remove"),
            await staff.get("pets/1"),
        ):
            assert_refused(
                gone, 404, "There is no animal 1 any more: ben removed it on 2027-01-15 08:00:30 UTC."
            )
            assert "Animal added name: Rex" in gone.text


@pytest.mark.usefixtures("rex")
class TestRemove:
    """Asked on a page of its own."""

    async def test_it_shows_what_it_removes_and_then_does(self, shop: Shop, staff: Visitor) -> None:
        """The page of animals says so, once."""
        asked = await staff.get("pets/1/remove")
        assert "This can't be undone" in asked.text
        assert "Rex" in asked.text
        assert await shop.store.pets.get_or_none(1) == REX
        shown = await staff.submit(asked, "pets/1/remove")
        assert "Animal 1 is removed. Animals" in shown.text
        assert await shop.store.pets.get_or_none(1) is None
        assert "is removed" not in (await staff.get("pets")).text

    async def test_not_while_an_order_holds_it(self, shop: Shop, staff: Visitor) -> None:
        """The page names the order and has no button; one from before is refused in the interface's words."""
        asked = await staff.get("pets/1/remove")
        await shop.store.orders.place(1, NewOrder(1), ACTOR)
        held = await staff.get("pets/1/remove")
        assert held.links["Order 1"].endswith("console/orders/1")
        assert [form.buttons for form in held.forms] == [[], ["Sign out"]]
        refused = await staff.submit(asked, "pets/1/remove")
        assert refused.status == 409
        removal = await shop.ask("DELETE", "/v1/pets/1")
        assert removal.json()["message"] in refused.text


async def all_pets(shop: Shop) -> list[Pet]:
    page = await shop.store.pets.page(PetQuery(100))
    pets: list[Pet] = page.pets
    return pets


async def test_it_adds_an_animal(shop: Shop, staff: Visitor) -> None:
    """An animal is added in any state, under the name of who did it; its page says so."""
    shown = await staff.fill("pets/new", "pets/new", name="Mia", category="-7", status="sold")
    assert shown.address == "/console/pets/1"
    assert "Animal 1 is added." in shown.text
    assert await all_pets(shop) == [Pet(1, "Mia", -7, PetStatus.SOLD)]
    assert [entry.actor for entry in await entries(shop.store, "pet:1")] == ["console:a-staff"]


async def test_a_form_has_the_focus_where_it_is_filled_in_next(staff: Visitor) -> None:
    """The first field on arrival and for another one; after an error the first wrong one, and the title says
    that there is one."""
    for fields, focus, title in (
        ({}, ["name"], "<title>Add an animal"),
        ({"name": "Mia", "category": "?", "status": "?"}, ["category"], "<title>Error: Add an animal"),
        ({"name": "Mia", "category": "1", "then": "another"}, ["name"], "<title>Add an animal"),
    ):
        shown = await staff.get("pets/new")
        if fields:
            shown = await staff.post("pets/new", {**shown.form("pets/new").fields, **fields})
        page = shown.body.decode()
        assert re.findall(r'<(?:input|select) id="(\w+)"[^>]* autofocus>', page) == focus
        assert title in page


async def test_after_an_animal_the_form_for_another_keeps_the_category(shop: Shop, staff: Visitor) -> None:
    """It has another Idempotency-Key."""
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

    async def test_one_form_sent_five_times_at_once_adds_one_animal(self, shop: Shop, staff: Visitor) -> None:
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
        assert_refused(shown, 409, "send it once more")
        assert len(await all_pets(shop)) == 1
        await staff.submit(shown, "pets/new")
        assert [pet.name for pet in await all_pets(shop)] == ["Mia", "Tom"]


async def test_a_category_that_does_not_say_which(shop: Shop, staff: Visitor) -> None:
    """Two have the name, so it takes the number; a form of an animal there has the number too."""
    execute_in_file(shop.path, "INSERT INTO categories VALUES (5, 'Dogs'), (6, 'Dogs')")
    shown = await staff.fill("pets/new", "pets/new", name="Mia", category="dogs")
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
    assert (await shop.store.pets.get_or_none(1)).category_id == 3


PETS = [("Rex", 1, AVAILABLE), ("rexa", 2, SOLD), ("Mia", 1, SOLD), ("2 Be", 3, AVAILABLE), ("R%x", 1, SOLD)]

QUERIES = [
    ("", ["R%x", "2 Be", "Mia", "rexa", "Rex"]),
    ("?order=oldest", ["Rex", "rexa", "Mia", "2 Be", "R%x"]),
    ("?status=sold", ["R%x", "Mia", "rexa"]),
    ("?category=1&status=sold", ["R%x", "Mia"]),
    ("?category=77", []),
    ("?q=re", ["rexa", "Rex"]),
    ("?q=%20REX%20&order=oldest", ["Rex", "rexa"]),
    ("?q=exa", ["rexa"]),
    ("?q=be%202", ["2 Be"]),
    ("?q=%232&status=sold", ["rexa"]),
    ("?q=r%25", ["R%x"]),
    ("?q=%20", ["R%x", "2 Be", "Mia", "rexa", "Rex"]),
    ("?q=re&category=2&status=sold", ["rexa"]),
    ("?q=2", ["rexa", "2 Be"]),
    ("?q=2&status=available", ["2 Be"]),
    ("?q=02", ["rexa"]),
    ("?q=9223372036854775808", []),
    ("?q=nobody", []),
]


@pytest.fixture
async def filled(shop: Shop) -> Shop:
    """Five animals; categories 1 and 2 have names."""
    for new in PETS:
        await shop.store.pets.add(NewPet(*new), ACTOR)
    await shop.store.categories.name(1, "Dogs", ACTOR)
    await shop.store.categories.name(2, "Cats", ACTOR)
    await shop.index()
    return shop


def names(shown: Shown) -> list[str]:
    """The animals of the page, in its order."""
    return re.findall(r'/pets/[0-9]+"><bdi[^>]*>([^<]*)</bdi>', shown.body.decode())


class TestFinding:
    """Animals are found, in an order."""

    async def test_by_number_name_category_and_status(self, filled: Shop, viewer: Visitor) -> None:
        """All combine; digits are a number, whose animal comes first, and a part of a name."""
        for query, found in QUERIES:
            shown = await viewer.get(f"pets{query}")
            assert (shown.status, names(shown)) == (200, found), query
            assert ("No animals match." in shown.text) is (not found)

    async def test_a_row_tells_the_category_by_its_name(self, filled: Shop, viewer: Visitor) -> None:
        """One without a name by its number. The animal is linked."""
        shown = await viewer.get("pets")
        assert "4 2 Be 3 available 3 Mia Dogs sold 2 rexa Cats sold 1 Rex Dogs available" in shown.text
        assert shown.links["Mia"].endswith("console/pets/3")


class TestGoingOn:
    """Fifty animals are a page."""

    async def test_a_search_that_finds_little_stops_and_goes_on(self, shop: Shop, viewer: Visitor) -> None:
        """It says as far as which animal it has looked."""
        values = ", ".join(f"('rex {n:04d}', 1, 'available')" for n in range(TEXTS_SCANNED_MAX))
        await shop.store.pets.add(NewPet("Rey", 1, SOLD), ACTOR)
        execute_in_file(shop.path, f"INSERT INTO pets (name, category_id, status) VALUES {values}")
        await shop.index()
        shown = await viewer.get("pets?q=re&status=sold")
        assert names(shown) == []
        assert "No animals match so far." in shown.text
        assert "Looked through the animals from 2 on; there may be more." in shown.text
        further = await follow(viewer, shown, "Look further")
        assert names(further) == ["Rey"]
        assert "Look further" not in further.links

    async def test_only_the_beginning_of_a_name_is_found_without_an_index(
        self, shop: Shop, viewer: Visitor
    ) -> None:
        """The page says so until it is made."""
        await shop.store.pets.add(NewPet("Lady Rex", 1), ACTOR)
        for text, found in (("lady", ["Lady Rex"]), ("rex", [])):
            shown = await viewer.get(f"pets?q={text}")
            assert names(shown) == found
            assert "The index of names is being made." in shown.text


class TestLive:
    """What htmx asks for while somebody types."""

    async def test_it_gets_the_rows_alone(self, filled: Shop, viewer: Visitor) -> None:
        """They are the rows that the whole page has."""
        asked = [("hx-request", "true")]
        shown = await viewer.get("pets?q=re", headers=asked)
        assert names(shown) == ["rexa", "Rex"]
        assert shown.body.startswith(b'<div id="rows"')
        assert shown.body.strip() in (await viewer.get("pets?q=re")).body

    async def test_the_way_back_leads_to_a_whole_page(self, viewer: Visitor) -> None:
        """The way back after a search gets a whole page, as htmx replaces the page by the answer."""
        asked = [("hx-request", "true"), ("hx-history-restore-request", "true")]
        shown = await viewer.get("pets?q=re", headers=asked)
        assert {"Overview", "Animals"} <= set(shown.links)
