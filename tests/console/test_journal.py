"""The journal's page: entries in words, filters, and pages that end."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest

from petstore.console.journal import lines
from petstore.core.journal import Entry, JournalQuery
from petstore.core.limits.plans import FREE, PRO
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet, PetChange
from petstore.core.values import INT64_MAX
from tests.console.conftest import assert_refused, follow
from tests.support.cases import every_case
from tests.support.console import Visitor
from tests.support.failing_webhooks import add_webhook
from tests.support.journal import ACTOR
from tests.support.service import Shop

REX = NewPet("Rex <b>", 1)


async def test_an_entry_says_who_what_when_and_from_what_to_what(shop: Shop, viewer: Visitor) -> None:
    """A journal entry is in words, with links to what it is about and to all of the same actor."""
    await shop.store.pets.add(REX, "console:anna")
    await shop.store.pets.change(1, PetChange(name="Max"), "api:shop/key 3")
    shown = await viewer.get("journal")
    assert "shop, key 3 API Animal changed animal 1 name: Rex <b> → Max" in shown.text
    assert "anna console Animal added animal 1 name: Rex <b> category: 1 status: available" in shown.text
    assert shown.links["animal 1"] == "../console/pets/1"
    assert shown.links["anna"].endswith("journal?actor=console%3Aanna")


async def test_each_kind_of_subject_has_its_page(shop: Shop, viewer: Visitor) -> None:
    """Animals, orders, accounts, keys and webhooks; a category and the store have none of their own."""
    store = shop.store
    await store.accounts.add("farm", FREE, ACTOR)
    account = await store.accounts.find("farm")
    await store.keys.issue("farm", "test", ACTOR)
    (key,) = await store.keys.of_account("farm")
    await add_webhook(store, key.id)
    await store.pets.add(REX, ACTOR)
    await store.orders.place(account.id, NewOrder(1), ACTOR)
    await store.categories.name(7, "Dogs", ACTOR)
    shown = await viewer.get("journal")
    for link in (f"account {account.id}", f"key {key.id}", "webhook 1", "animal 1", "order 1"):
        path = link.replace("animal", "pet").replace(" ", "s/")
        assert shown.links[link] == f"../console/{path}"
    assert "category 7" in shown.text
    assert "category 7" not in shown.links


async def test_older_entries_about_one_thing_are_in_the_journal(shop: Shop, staff: Visitor) -> None:
    """The twenty-first and older ones are there: an animal's, an order's, an account's and a category's page
    leads there."""
    store = shop.store
    owner = await store.accounts.add("farm", FREE, ACTOR)
    for _ in range(2):
        await store.pets.add(REX, ACTOR)
    await store.orders.place(owner.id, NewOrder(2), ACTOR)
    for number in range(20):
        await store.pets.change(1, PetChange(name=f"n{number}"), ACTOR)
        await store.orders.change(1, ACTOR, ship_date_ms=number)
        await store.accounts.rename(str(owner.id), f"farm-{number}", ACTOR)
        await store.categories.name(1, f"c{number}", ACTOR)
    await store.categories.name(1, "c20", ACTOR)
    for page, oldest in (
        ("pets/1", "Animal added"),
        ("orders/1", "Order placed"),
        (f"accounts/{owner.id}", "Account added"),
        ("categories/1", "category 1 name: c0"),
    ):
        shown = await staff.get(page)
        older = await follow(staff, shown, "Older changes")
        assert (oldest in shown.text, oldest in older.text) == (False, True), page


async def test_a_person_has_a_name_and_for_operators_a_page(
    shop: Shop, viewer: Visitor, operator: Visitor
) -> None:
    """A search by their number shows it too."""
    await shop.store.people.set_role("a-viewer", Role.STAFF, "cli:bob")
    for path in ("", "journal", "journal?about=person:1", "journal?about=person:a-viewer"):
        shown = await operator.get(path)
        assert "Person role changed person a-viewer role: viewer → staff" in shown.text
        assert shown.links["person a-viewer"].endswith("console/people/of/a-viewer")
    assert "person a-viewer" in (shown := await viewer.get("journal")).text
    assert "person a-viewer" not in shown.links


async def test_many_entries_of_one_change_are_one_line_that_opens(
    shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line has the newest objects, here and on the overview; a page has all. A few entries stay lines of
    their own. Pages go on after them."""
    monkeypatch.setattr("petstore.console.journal_pages._PAGE_LIMIT", 6)
    for count in (4, 4, 30):
        shop.clock.advance(1)
        for _ in range(count):
            await shop.store.pets.add(REX, ACTOR)
    folded = "tests command line Animal added 30 times animal 38 name: Rex"
    for path in ("", "journal"):
        shown = await viewer.get(path)
        assert folded in shown.text
        assert shown.links["animal 29"].endswith("/console/pets/29")
        assert "animal 28" not in shown.links
    whole = await follow(viewer, shown, "All entries of this change")
    assert "What was changed at once by tests" in whole.text
    assert whole.text.count("Animal added") == 6
    rest = await follow(viewer, whole, "Earlier entries")
    assert "animal 32" in rest.links
    assert "animal 33" not in rest.links
    for no_change in (999, INT64_MAX):
        assert (await viewer.get(f"journal?change={no_change}")).status == 404
    assert shown.text.count("Animal added") == 6
    further = await follow(viewer, shown, "Earlier entries")
    assert "times" not in further.text
    assert [each for each in further.links if "animal" in each] == ["animal 3", "animal 2", "animal 1"]


async def test_a_change_is_whole_from_each_of_its_lines(shop: Shop, viewer: Visitor) -> None:
    """It is whole from a line within it, on a later page, and without what others did at that time."""
    for _ in range(20):
        await shop.store.pets.add(REX, ACTOR)
    await shop.store.pets.add(REX, f"{ACTOR}/key 3")
    shown = await viewer.get("journal?before=17")
    whole = await follow(viewer, shown, "All entries of this change")
    assert [f"animal {number}" in whole.links for number in (1, 20, 21)] == [True, True, False]


ENTRIES = [
    # Names without humps, none for what was not there, moments to be shown like all others.
    (
        ("cli", "account", "plan_changed"),
        {"expiresAt": None, "complete": False, "perMinute": 60, "plan": "free"},
        {"expiresAt": "2027-01-15T08:00:30.000Z", "complete": True, "perMinute": 300, "plan": "pro"},
        ("cli", "", "Account plan changed"),
        [
            ("expires at", [None, 1_800_000_030_000]),
            ("complete", ["no", "yes"]),
            ("per minute", ["60", "300"]),
            ("plan", ["FREE", "PRO"]),
        ],
    ),
    # What the service finds by itself has no place where it acted.
    (
        ("service", "account", "limit_approaching"),
        None,
        {"limit": 1_000, "used": 800, "resetAt": "2027-01-16T00:00:00.000Z"},
        ("service", "", "Account limit approaching"),
        [("limit", ["1000"]), ("used", ["800"]), ("reset at", [1_800_057_600_000])],
    ),
    (
        ("service", "account", "deprecated_used"),
        None,
        {"operation": "GET /v1/pets/{petId}", "since": "2027-01-01", "calls": 9},
        ("service", "", "Account deprecated used"),
        [("operation", ["GET /v1/pets/{petId}"]), ("since", ["2027-01-01"]), ("calls", ["9"])],
    ),
    # The owner of an address acts by its mail; kinds are a list, and no kind is none.
    (
        ("mail:contact 3", "person", "contact_changed"),
        {"contact": "a@example.com", "off": []},
        {"contact": "a@example.com", "off": ["order.created", "list.finished"]},
        ("contact 3", "mail", "Person contact changed"),
        [("contact", ["a@example.com"]), ("off", ["", "order.created, list.finished"])],
    ),
    # A list that was checked is not said to be stored.
    (
        ("console:anna", "store", "list_finished"),
        None,
        {"list": "a.csv", "state": "checked"},
        ("anna", "console", "Stock list checked"),
        [("list", ["a.csv"]), ("state", ["checked"])],
    ),
]


@every_case(("written", "before", "after", "said", "changes"), ENTRIES)
def test_an_entry_is_in_words(
    written: tuple[str, str, str],
    before: dict[str, Any] | None,
    after: dict[str, Any],
    said: tuple[str, str, str],
    changes: list[tuple[str, list[object]]],
) -> None:
    """Who, where and what; each member by its name, with the values before and after."""
    actor, subject, action = written
    (line,) = lines([Entry(1, 5, actor, subject, 1, action, before, after)], {"plan": str.upper})
    assert (line.who, line.channel, line.what) == said
    assert [(change.member, list(change.values)) for change in line.changes] == changes
    moments = [isinstance(value, int) for _, (*_, value) in changes]
    assert [change.is_moment for change in line.changes] == moments


async def test_filters_combine_and_stay_on_the_next_page(
    shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters are object, actor and days, the last one included; they hold a page further."""
    monkeypatch.setattr("petstore.console.journal_pages._PAGE_LIMIT", 1)
    await shop.store.accounts.add("farm", FREE, "cli:bob")
    await shop.store.accounts.set_plan("farm", PRO, "cli:anna")
    await shop.store.accounts.set_plan("farm", FREE, "cli:anna")
    await shop.store.accounts.set_plan("farm", PRO, "cli:bob")
    filters: dict[str, Any] = {
        "about": "account:farm",
        "actor": "cli:anna",
        "since": "2027-01-15",
        "until": "2027-01-15",
    }
    shown = await viewer.fill("journal", "journal", **filters)
    assert "300 → 60" in shown.text
    assert shown.forms[-1].fields == filters
    further = await follow(viewer, shown, "Earlier entries")
    assert "60 → 300" in further.text
    assert "Earlier entries" not in further.links
    assert "First page" in further.links
    none = await viewer.get("journal?" + urlencode({**filters, "until": "2027-01-14", "since": ""}))
    assert "No entries match." in none.text


async def test_the_filters_take_what_people_write(shop: Shop, viewer: Visitor) -> None:
    """A noun and a number, a number alone, or a name; what may be several things is asked back."""
    await shop.store.pets.add(NewPet("Lady Captain", 1), "cli:anna")
    await shop.store.pets.add(NewPet("Mia", 1), "console:anna")
    await shop.store.pets.add(NewPet("Mia", 1), "cli:bob")
    await shop.store.categories.name(1, "Dogs", ACTOR)
    await shop.store.orders.place(1, NewOrder(1), ACTOR)
    for name in ("paws", "PAWS"):
        await shop.store.accounts.add(name, FREE, ACTOR)
    await shop.index()
    for text, said in (
        ("animal 1", "name: Lady Captain"),
        ("Order #1", "Order placed"),
        ("2", "name: Mia"),
        ("lady  captain", "name: Lady Captain"),
        ("dogs", "Category named"),
        ("store", "No entries match."),
        ("customer 1", "Account added"),
    ):
        assert said in (await viewer.get("journal?" + urlencode({"about": text}))).text, text
    for text, told in (
        ("mia", "Which one? Write animal 2 (Mia) or animal 3 (Mia)."),
        ("paws", "Which one? Write account PAWS (account) or account paws (account)."),
        ("1", "Which one? Write animal 1 (Lady Captain) or order 1 (placed)."),
        ("nobody", "Nothing is called 'nobody'. Write a name, or what it is and its number: animal 7"),
        ("99", "Nothing is called '99'."),
    ):
        shown = await viewer.get("journal?" + urlencode({"about": text}))
        assert_refused(shown, 400, told)
    by_anna = await viewer.get("journal?actor=anna")
    assert "anna command line Animal added" in by_anna.text
    assert "anna console Animal added" in by_anna.text
    assert "bob" not in by_anna.text


async def test_a_long_search_says_how_far_it_looked(
    shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of the last entry that was read, and a way further."""
    monkeypatch.setattr("petstore.console.journal_pages.JournalQuery", partial(JournalQuery, scan_max=2))
    for actor in ("cli:anna", "cli:bob", "cli:bob", "cli:bob"):
        await shop.store.pets.add(REX, actor)
    shown = await viewer.get("journal?actor=cli:anna")
    assert "Searched back to 2027-01-15 08:00:30 UTC; there may be earlier entries." in shown.text
    assert "No entries match." not in shown.text
    while "Animal added" not in shown.text:
        shown = await follow(viewer, shown, "Look further")
    assert "anna command line Animal added" in shown.text
