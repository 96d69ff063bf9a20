"""Accounts, animals and categories are chosen by a part of their names, with a script and without."""

from __future__ import annotations

import re

import pytest

from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, PetStatus
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop


@pytest.fixture(autouse=True)
async def filled(shop: Shop) -> None:
    """Two accounts and three animals that are alike, and a closed account."""
    for name in ("claws-and-paws", "paws", "pawn-shop"):
        await shop.store.accounts.add(name, FREE, ACTOR)
    await shop.store.accounts.close("pawn-shop", ACTOR)
    for name, status in (("Tiger Lily", PetStatus.SOLD), ("Old Tiger", PetStatus.AVAILABLE)):
        await shop.store.pets.add(NewPet(name, 1, status), ACTOR)
    await shop.store.pets.add(NewPet("Rex", 9), ACTOR)
    await shop.store.categories.name(1, "Cats", ACTOR)
    await shop.index()


def texts(shown: Shown) -> list[str]:
    """What the list below a field puts into it."""
    return re.findall('data-text="([^"]*)"', shown.body.decode())


async def test_a_list_offers_what_a_field_can_have(viewer: Visitor) -> None:
    """Animals that can be ordered come first; no closed account, and nothing before something is typed."""
    offers = {
        "accounts?q=PAW": ["paws", "claws-and-paws"],
        "accounts?q=": [],
        "pets?q=tiger": ["2 · Old Tiger", "1 · Tiger Lily"],
        "pets?q=%233": ["3 · Rex"],
        "categories?q=cat": ["Cats"],
        "categories?q=1": ["Cats"],
    }
    for query, expected in offers.items():
        assert texts(await viewer.get(f"pick/{query}")) == expected, query
    assert (await viewer.get("pick/keys?q=x")).status == 404


async def test_without_a_script_a_text_that_means_several_is_asked_back(shop: Shop, staff: Visitor) -> None:
    """A text that means several gets lists in the form's own fields; what is chosen there is ordered."""
    shown = await staff.fill("orders/new", "orders/new", account="paw", pet="tiger", reference="by phone")
    assert shown.status == 400
    form = shown.form("orders/new")
    assert form.choices == {
        "account": ["paws", "claws-and-paws", ""],
        "pet": ["2 · Old Tiger", "1 · Tiger Lily", ""],
    }
    shown = await staff.submit(shown, "orders/new", account="claws-and-paws", pet="2 · Old Tiger")
    assert "Order 1 is placed." in shown.text
    assert "by phone" in shown.text
    again = await staff.fill("orders/new", "orders/new", account="paw", pet="3")
    assert "" in again.form("orders/new").choices["account"]
    none = await staff.submit(again, "orders/new", account="")
    assert "account" not in none.form("orders/new").choices
    assert "Whose order is it?" in none.text


async def test_a_whole_name_or_a_number_is_no_question(shop: Shop, staff: Visitor) -> None:
    """Whatever its capitals, though other names have it in them."""
    shown = await staff.fill("orders/new", "orders/new", account="PAWS", pet="old tiger")
    assert "Order 1 is placed." in shown.text
    order = await shop.store.orders.get(1)
    assert (order.pet_id, (await shop.store.accounts.find("paws")).id) == (2, order.account_id)
    shown = await staff.fill("orders/new", "orders/new", account="#3", pet="#3")
    assert "Order 2 is placed." in shown.text


async def test_an_account_is_never_taken_for_one_that_is_written_in_other_capitals(
    shop: Shop, staff: Visitor
) -> None:
    """The name as it is written has no doubt; one that both may mean is asked back."""
    await shop.store.accounts.add("PAWS", FREE, ACTOR)
    await shop.index()
    shown = await staff.fill("orders/new", "orders/new", account="Paws", pet="3")
    assert shown.form("orders/new").choices["account"] == ["PAWS", "paws", "claws-and-paws", ""]
    await staff.fill("orders/new", "orders/new", account="paws", pet="3")
    meant = await shop.store.accounts.find("paws")
    assert (await shop.store.orders.get(1)).account_id == meant.id


async def test_an_animal_is_never_taken_for_another_one_of_its_name(shop: Shop, staff: Visitor) -> None:
    """The animal of the exact name is offered first, where newer ones with it in theirs fill the list."""
    for name in [*["Old Tiger's cub"] * 7, "Old Tiger"]:
        await shop.store.pets.add(NewPet(name, 1), ACTOR)
    await shop.index()
    shown = await staff.fill("orders/new", "orders/new", account="paws", pet="old tiger")
    assert shown.form("orders/new").choices["pet"][0] == "11 · Old Tiger"


async def test_both_wrong_fields_are_told_at_once(staff: Visitor) -> None:
    """Nobody finds out one by one."""
    shown = await staff.fill("orders/new", "orders/new", account="nobody", pet="nothing")
    assert "There is no account 'nobody'." in shown.text
    assert "Which animal? Write a part of its name, or its number." in shown.text
