"""The search for anything: by a part of a name, a number, a reference, a key or its last four characters."""

from __future__ import annotations

import pytest

from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop


@pytest.fixture
async def filled(shop: Shop) -> Shop:
    """One of each kind that can be found."""
    account = await shop.store.accounts.add("claws-and-paws", FREE, ACTOR)
    pet = (await shop.store.pets.add(NewPet("Lady Captain", 1), ACTOR)).pet
    await shop.store.orders.place(account.id, NewOrder(pet.id, reference="Fête 7/26"), ACTOR)
    await shop.store.categories.name(1, "Söme dogs", ACTOR)
    await shop.index()
    return shop


async def sent(visitor: Visitor, text: str) -> Shown:
    """What somebody sees who writes a text into the field of every page."""
    return await visitor.fill("", "search", q=text)


FOUND = [
    ("captain", "Lady Captain", "console/pets/1"),
    (" #1 ", "Lady Captain", "console/pets/1"),
    ("fete", "Order 1", "console/orders/1"),
    ("#1", "Order 1", "console/orders/1"),
    ("AND paws", "claws-and-paws", "console/accounts/2"),
    ("DOGS", "Söme dogs", "console/pets?category=1"),
]


async def test_everything_is_found_by_what_people_write(filled: Shop, viewer: Visitor) -> None:
    """Any page has the search; its address can be sent to somebody."""
    for text, name, page in FOUND:
        shown = await sent(viewer, text)
        assert shown.links[name].endswith(page), text
        assert shown.address == "/console/search"  # without its query
    assert "Nothing matches nobody." in (await sent(viewer, "nobody")).text
    assert "Write a part of a name" in (await viewer.get("search")).text
    live = await viewer.get("search?q=capt", headers=[("hx-request", "true")])
    assert live.body.startswith(b'<div id="rows"')


async def test_only_operators_find_people(filled: Shop, viewer: Visitor, operator: Visitor) -> None:
    """A search finds people for operators alone, as their pages are theirs alone."""
    await filled.store.people.add("anna.b", Role.STAFF, ACTOR)
    assert "anna.b" not in (await sent(viewer, "nna")).links
    assert (await sent(operator, "nna")).links["anna.b"].endswith("people/of/anna.b")


class TestKeys:
    """A key is found, and its text stays out of addresses."""

    async def test_its_text_leads_to_its_page(self, filled: Shop, viewer: Visitor) -> None:
        """A key's text is found in whatever it was pasted with, and no address has it; its last four
        characters find it, alone or as pages and logs show a key."""
        key = await filled.store.keys.issue("claws-and-paws", "live", ACTOR, label="till")
        for text in (key.secret, f"Authorization: Bearer {key.secret}\n"):
            shown = await sent(viewer, text)
            assert shown.address == "/console/keys/2"
            assert "claws-and-paws" in shown.text
            assert key.secret not in shown.body.decode()
        end, display = key.secret[-4:], key.record.display
        for text in (end, f"…{end}", f"...{end}", display):
            shown = await sent(viewer, text)
            assert shown.links[display].endswith("console/keys/2"), text
            assert "claws-and-paws · till active" in shown.text

    async def test_what_is_no_key_of_this_store_is_said(self, filled: Shop, viewer: Visitor) -> None:
        """An unknown one, and one that was cut; neither comes back in the page."""
        key = (await filled.store.keys.issue("claws-and-paws", "live", ACTOR)).secret
        unknown = "pets_live_00000000000000000000000000000000" + "1bm4Ak"
        for text, said in (
            (key[:-1], "This is not a whole key"),
            (key[:-1] + ("a" if key[-1] != "a" else "b"), "This is not a whole key"),
            (unknown, "key"),
        ):
            shown = await sent(viewer, text)
            assert said in shown.text
            assert text not in shown.body.decode()
            assert shown.address == "/console/search"
