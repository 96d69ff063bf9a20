"""Chosen rows of a list: each is decided on its own, what can't be done says why, animals can be put back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import UNSET

from petstore.console.several import ROWS_MAX
from petstore.core.durations import DAY_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, PetChange, PetQuery, PetStatus
from petstore.transactions.pets import Pets
from tests.console.conftest import assert_refused
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, entries, written
from tests.support.service import Shop

AVAILABLE, PENDING, SOLD = PetStatus
_BOX = re.compile(r'form="several" name="(row-[0-9]+)" value="([^"]*)"')
_BUTTON = re.compile(r'form="several" name="one" value="([^"]*)">([^<]*)<span class="hidden">([^<]*)</span>')


async def choose(visitor: Visitor, shown: Shown, rows: str, do: str, **fields: Any) -> Shown:
    """Tick rows of a list, as its page showed them, and press a button."""
    boxes = dict(_BOX.findall(shown.body.decode()))
    ticked = {name: boxes[name] for name in (f"row-{each}" for each in rows.split())}
    return await send(visitor, shown, **ticked, **fields, do=do)


async def press(visitor: Visitor, shown: Shown, label: str) -> Shown:
    """Press the button of a row, such as `Approve order 7`."""
    buttons = {text + what: value for value, text, what in _BUTTON.findall(shown.body.decode())}
    return await send(visitor, shown, one=buttons[label])


async def send(visitor: Visitor, shown: Shown, **fields: Any) -> Shown:
    (form,) = [form for form in shown.forms if "/several/" in form.action]
    path = form.action.rpartition("console/")[2]
    return await visitor.post(path, {**form.fields, **fields})


@pytest.fixture
async def pets(shop: Shop) -> Shop:
    """Four animals; an order holds the fourth."""
    for name in ("Rex", "Tom", "Kim", "Sam"):
        await shop.store.pets.add(NewPet(name, 1), ACTOR)
    await shop.store.orders.place(1, NewOrder(4), ACTOR)
    return shop


@pytest.fixture
async def orders(shop: Shop) -> Shop:
    """Four orders that were placed."""
    for name in ("Rex", "Tom", "Kim", "Sam"):
        pet = (await shop.store.pets.add(NewPet(name, 1), ACTOR)).pet
        await shop.store.orders.place(1, NewOrder(pet.id), ACTOR)
    return shop


async def statuses(shop: Shop) -> list[str]:
    return [pet.status.value for pet in (await shop.store.pets.page(PetQuery())).pets]


async def states(shop: Shop) -> list[str]:
    return [(await shop.store.orders.get(number)).status.value for number in range(1, 5)]


class TestAnimals:
    """Status and category."""

    async def test_all_chosen_are_changed(self, pets: Shop, staff: Visitor) -> None:
        """One message, on the list as it was filtered; the journal has an entry for each."""
        shown = await choose(staff, await staff.get("pets?status=available"), "1 3", "sold")
        assert "2 animals are sold." in shown.text
        assert "Tom" in shown.links
        assert "Rex" not in shown.links
        assert (await written(pets.store))[-2:] == ["pet.changed pet:1", "pet.changed pet:3"]

    async def test_a_category_is_named_beside_its_button(self, pets: Shop, staff: Visitor) -> None:
        """Nothing is tried without one."""
        await pets.store.categories.name(2, "Cats", ACTOR)
        list_ = await staff.get("pets")
        assert "Choose a category" in (await choose(staff, list_, "1 2", "category", category="")).text
        assert "2 animals are in Cats." in (await choose(staff, list_, "1 2", "category", category="2")).text
        assert [entry.after for entry in await entries(pets.store, "pet:1")][1:] == [{"categoryId": 2}]

    async def test_each_refusal_says_why(self, pets: Shop, staff: Visitor) -> None:
        """The others are changed all the same."""
        await pets.store.pets.change(3, PetChange(status=SOLD), ACTOR)
        shown = await staff.get("pets")
        await pets.store.pets.change(2, PetChange("Tim"), ACTOR)
        report = await choose(staff, shown, "1 2 3 4", "sold")
        assert "1 sold, 3 not" in report.text
        assert "Animal 2 has changed meanwhile" in report.text
        assert "Animal 3 is sold already." in report.text
        assert "Order 1 holds animal 4, so its status can't change" in report.text
        assert report.links["Animal 3"].endswith("console/pets/3")
        assert await statuses(pets) == ["sold", "available", "sold", "pending"]

    async def test_sent_again_nothing_is_done_twice(self, pets: Shop, staff: Visitor) -> None:
        """The back button or a second click sends it again."""
        shown = await staff.get("pets")
        await choose(staff, shown, "1 2", "sold")
        before = await written(pets.store)
        again = await choose(staff, shown, "1 2", "sold")
        assert_refused(again, 409, "Animal 1 has changed meanwhile")
        assert await written(pets.store) == before

    async def test_a_form_that_no_page_has(self, pets: Shop, staff: Visitor) -> None:
        """Another action, more rows than a page has, no number, a way back to elsewhere: nothing happens. Nor
        without a row, which the page says."""
        list_, before = await staff.get("pets"), await written(pets.store)
        many = {f"row-{number}": "x" for number in range(ROWS_MAX + 1)}
        for fields in (
            {"do": "eaten", "row-1": "x"},
            {"do": "sold", **many},
            {"do": "sold", "row-x": "x"},
            {"one": "sold"},
            {"do": "sold", "row-1": "x", "back": "https://evil.example"},
        ):
            assert (await send(staff, list_, **fields)).status == 400
        assert_refused(await choose(staff, list_, "", "sold"), 400, "Choose rows first.")
        assert await written(pets.store) == before

    async def test_a_store_that_is_away_is_asked_once(
        self, pets: Shop, staff: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The rest is not tried, and the report says so."""
        asked = []

        async def fail(_pets: Pets, pet_id: int, *_: Any, **__: Any) -> None:
            asked.append(pet_id)
            raise StoreUnavailable("the disk is gone", public="The store can't be reached.")

        shown = await staff.get("pets")
        monkeypatch.setattr(Pets, "change", fail)
        report = await choose(staff, shown, "1 2 3", "sold")
        assert asked == [1]
        assert "Animal 1: The store can't be reached." in report.text
        assert report.text.count("Not tried") == 2


class TestOrders:
    """Approve, deliver, cancel."""

    async def test_each_is_decided_on_its_own(self, orders: Shop, staff: Visitor) -> None:
        """A colleague's move is not overwritten."""
        await orders.store.orders.change(1, ACTOR, status=OrderStatus.APPROVED)
        shown = await staff.get("orders")
        await orders.store.orders.change(1, ACTOR, status=OrderStatus.DELIVERED)
        await orders.store.orders.change(2, ACTOR, status=OrderStatus.APPROVED)
        report = await choose(staff, shown, "1 2 3", "delivered")
        assert_refused(report, 409, "Order 1 is delivered already.")
        assert "Order 2 is approved by now: somebody has moved it since it was placed." in report.text
        assert "Order 3 is placed: it can become approved or cancelled, not delivered." in report.text
        assert await states(orders) == ["delivered", "approved", "placed", "placed"]

    async def test_a_cancellation_of_several_asks_first(self, orders: Shop, staff: Visitor) -> None:
        """A cancellation can't be undone."""
        asked = await choose(staff, await staff.get("orders"), "1 2", "cancelled")
        assert "Cancel: 2 orders?" in asked.text
        assert await states(orders) == ["placed"] * 4
        shown = await send(staff, asked, do="cancelled")
        assert (shown.address, "2 orders are cancelled." in shown.text) == ("/console/orders", True)
        assert await states(orders) == ["cancelled", "cancelled", "placed", "placed"]

    async def test_what_asks_on_its_page_asks_in_the_report(self, orders: Shop, staff: Visitor) -> None:
        """An animal that an order sold, a ship date in the future. Yes does it, and leads back."""
        tomorrow = orders.clock.now_ms() + DAY_MS
        for order_id, ship_date_ms in ((1, UNSET), (2, tomorrow)):
            await orders.store.orders.change(
                order_id, ACTOR, status=OrderStatus.APPROVED, ship_date_ms=ship_date_ms
            )
        await orders.store.orders.change(1, ACTOR, status=OrderStatus.DELIVERED)
        shown = await choose(staff, await staff.get("orders?state=all"), "2", "delivered")
        assert_refused(shown, 409, "is in the future. Is that the ship date?")
        assert (await orders.store.orders.get(2)).status is OrderStatus.APPROVED
        shown = await press(staff, await staff.get("pets"), "Make available animal 1")
        assert "Order 1 sold animal 1" in shown.text
        assert (await orders.store.pets.get_or_none(1)).status is SOLD
        done = await send(staff, shown)
        assert (done.address, "Animal 1 is available." in done.text) == ("/console/pets", True)

    async def test_a_row_has_its_next_step(self, orders: Shop, staff: Visitor, viewer: Visitor) -> None:
        """The overview and the list offer a row's next step and lead back; a viewer has no button or box."""
        shown = await press(staff, await staff.get(), "Approve order 2")
        assert (shown.address, "Order 2 is approved." in shown.text) == ("/console", True)
        shown = await press(staff, await staff.get("orders?state=approved"), "Deliver order 2")
        assert (shown.address, "Order 2 is delivered." in shown.text) == ("/console/orders", True)
        assert b"several" not in (await viewer.get("orders")).body.replace(b"several.", b"")

    async def test_the_next_one_that_waits(self, orders: Shop, staff: Visitor) -> None:
        """A step leads to the oldest order that waits for the same step; then to what waits for another."""
        shown = await staff.fill("orders/1", "orders/1/approve")
        assert "Next order that waits: 2 placed" in shown.text
        shown = await staff.submit(shown, "orders/1/deliver")
        assert "Next order that waits: 2 placed" in shown.text
        await choose(staff, await staff.get("orders"), "2 3 4", "approved")
        assert "Next order that waits: 3 approved" in (await staff.get("orders/2")).text
        await choose(staff, await staff.get("orders"), "2 3 4", "delivered")
        assert "Next order" not in (await staff.get("orders/2")).text


async def test_all_chosen_keys_are_revoked(shop: Shop, operator: Visitor) -> None:
    """The chosen keys are revoked after a question; one that is revoked already says so."""
    await shop.store.accounts.add("zoo", FREE, ACTOR)
    for _ in range(3):
        await shop.store.keys.issue("zoo", "live", ACTOR)
    first, second, third = [key.id for key in await shop.store.keys.of_account("zoo")]
    asked = await choose(operator, await operator.get("accounts/2/keys"), f"{first} {third}", "revoked")
    assert "There is no way back" in asked.text
    await shop.store.keys.revoke(third, ACTOR)
    report = await send(operator, asked, do="revoked")
    assert f"Now revoked: {first}." in report.text
    assert f"Key {third} is revoked already." in report.text
    found = {key.id: key.state(shop.clock.now_ms()) for key in await shop.store.keys.of_account("zoo")}
    assert found == {first: "revoked", second: "active", third: "revoked"}


class TestUndo:
    """A change is undone within a minute, by the same person, if nothing has changed since."""

    async def test_one_change_is_undone_in_all_its_members(self, pets: Shop, staff: Visitor) -> None:
        """Name, category and status at once; one more entry of the journal. Sent twice, it acts once."""
        await pets.store.pets.change(1, PetChange(status=PENDING), ACTOR)
        saved = await staff.fill("pets/1", "pets/1", name="Max", category="2", status="sold")
        shown = await staff.submit(saved, "undo")
        assert (shown.address, "Animal 1 is as before." in shown.text) == ("/console/pets/1", True)
        entry = (await entries(pets.store, "pet:1"))[-1]
        assert (entry.actor, entry.after) == (
            "console:a-staff",
            {"name": "Rex", "categoryId": 1, "status": "pending"},
        )
        assert "Animal 1 has changed since" in (await staff.submit(saved, "undo")).text
        assert (await entries(pets.store, "pet:1"))[-1] == entry

    async def test_one_undo_for_several(self, pets: Shop, staff: Visitor) -> None:
        """It takes back those that were changed, also beside a report; one that has changed since stays."""
        report = await choose(staff, await staff.get("pets?status=available"), "1 2 3", "sold")
        await pets.store.pets.change(2, PetChange("Tim"), ACTOR)
        shown = await staff.submit(report, "undo")
        assert "2 as before, 1 not" in shown.text
        assert "Animal 2 has changed since" in shown.text
        assert await statuses(pets) == ["available", "sold", "available", "pending"]
        report = await choose(staff, await staff.get("pets"), "1 4", "sold")
        assert "Not sold:" in report.text
        assert "Animal 1 is as before." in (await staff.submit(report, "undo")).text

    async def test_after_a_minute_it_is_too_late(self, pets: Shop, staff: Visitor) -> None:
        """A moment before it is not."""
        for seconds, told in ((60, "is as before"), (60.001, "a change can be undone for a minute")):
            saved = await staff.fill("pets/1", "pets/1", name=f"Max {seconds}")
            pets.clock.advance(seconds)
            assert told in (await staff.submit(saved, "undo")).text

    async def test_what_is_not_ones_own(self, pets: Shop, staff: Visitor, anna: Visitor) -> None:
        """Another person's change, an animal that is gone or was only added, a form that no page has."""
        saved = await staff.fill("pets/1", "pets/1", name="Max")
        form = saved.form("undo").fields
        mine = (await anna.get("me")).forms[0].fields["csrf"]
        assert "changed since" in (await anna.post("undo", {**form, "csrf": mine})).text
        await pets.store.pets.remove(1, ACTOR)
        assert "changed since" in (await staff.submit(saved, "undo")).text
        added = {"csrf": form["csrf"], "pet-2": "x"}
        assert "changed since" in (await staff.post("undo", added)).text
        assert (await staff.post("undo", {"csrf": form["csrf"]})).status == 400

    async def test_a_name_of_a_category(self, pets: Shop, staff: Visitor) -> None:
        """A second rename is not lost."""
        await pets.store.categories.name(1, "Dogs", ACTOR)
        saved = await staff.fill("categories/1", "categories/1", name="Hounds")
        assert "Category 1 is as before." in (await staff.submit(saved, "undo")).text
        saved = await staff.fill("categories/1", "categories/1", name="Hounds")
        await pets.store.categories.name(1, "Wolves", ACTOR)
        assert "Category 1 has changed since" in (await staff.submit(saved, "undo")).text
        assert [each.name for each in await pets.store.categories.all()] == ["Wolves"]
