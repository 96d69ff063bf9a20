"""Refusals of the console: forms with a fault, addresses that no page links to, numbers that nothing has."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
import pytest_asyncio

from petstore.console.app import VIEWS
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.people import Role
from petstore.core.pets import NewPet, PetChange, PetStatus
from tests.console.conftest import OTHER, PASSWORD, assert_refused, with_password
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import open_shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

_INCOMPLETE = "load its page again"
_INT64 = "Expected an integer from -9223372036854775808"
_ENTERPRISE = {"name": "den", "plan": "enterprise"}
# The page, the end of its form's address, what is typed, the status and a part of the message.
FORMS = [
    ("accounts/new", "new", {"name": "12"}, 400, "can't name an account"),
    ("accounts/new", "new", {"name": "zoo"}, 409, "There is an account 'zoo' already; choose another name."),
    ("accounts/new", "new", {**_ENTERPRISE, "per_day": "5"}, 400, "needs both agreed numbers"),
    ("accounts/new", "new", {**_ENTERPRISE, "per_minute": "1e3"}, 400, "Write a whole number, such as"),
    ("accounts/new", "new", {**_ENTERPRISE, "per_minute": "0", "per_day": "5"}, 400, "must be from 1 to"),
    ("accounts/new", "new", {"name": "den", "per_minute": "7"}, 400, "The free plan has fixed limits"),
    ("accounts/new", "new", {"name": "den", "plan": "gold"}, 400, "There is no plan 'gold'"),
    ("accounts/new", "new", {"name": "den", "address": "den"}, 400, "'den' is not an email address"),
    ("accounts/2", "contacts", {"address": ""}, 400, "'' is not an email address. Write one such as"),
    ("accounts/2", "contacts", {"address": "zoo@example.com"}, 409, "is a contact of zoo already."),
    ("people/of/anna", "contacts", {"address": "anna@@example.com"}, 400, "is not an email address"),
    ("people/of/anna", "contacts", {"address": "anna@example.com"}, 409, "is a contact of anna already."),
    ("me", "contacts", {"address": "anna"}, 400, "'anna' is not an email address"),
    ("accounts/2/plan", "plan", {"plan": "pro", "was": ""}, 400, _INCOMPLETE),
    ("accounts/2/rename", "rename", {"name": "tests"}, 409, "There is an account 'tests' already"),
    ("accounts/2/rename", "rename", {"name": "den", "was": ""}, 400, _INCOMPLETE),
    ("accounts/1/keys/new", "new", {"label": "x" * 101}, 400, "at most 100 printable characters."),
    ("accounts/1/keys/new", "new", {"access": "all"}, 400, "Choose one of read, write, manage."),
    ("accounts/1/keys/new", "new", {"environment": "prod"}, 400, "Choose one of live, test."),
    ("accounts/1/keys/new", "new", {"days": "0"}, 400, "Write a whole number from 1 to 3,650."),
    ("accounts/1/keys/new", "new", {"until": "2000-01-01"}, 400, "Choose today or a day within 10 years."),
    ("accounts/1/keys/new", "new", {"until": "tomorrow"}, 400, "write it like 2026-11-22."),
    ("accounts/1/keys/new", "new", {"days": "5", "until": "2030-01-01"}, 400, "or a last day, not both."),
    ("accounts/1/keys/new", "new", {"once": "again"}, 400, _INCOMPLETE),
    ("accounts/1/keys", "keys", {"number": "2"}, 404, "tests has no key '2'."),  # another account's
    ("accounts/1/keys", "keys", {"number": "x"}, 404, "tests has no key 'x'."),
    ("keys/1/rotate", "rotate", {"overlap": "soon"}, 400, ", or 0 for no time at all."),
    ("keys/1/rotate", "rotate", {"overlap": "366d"}, 400, "The old key goes on for 365d at most."),
    ("orders", "orders", {"account": "nobody"}, 404, "nobody"),
    ("orders/new", "new", {"account": "", "pet": "3"}, 400, "Whose order is it?"),
    ("orders/new", "new", {"account": "shut", "pet": "3"}, 400, "Account 'shut' is closed;"),
    ("orders/new", "new", {"account": "zoo", "pet": "99"}, 409, "There is no animal 99 to order."),
    ("orders/new", "new", {"account": "zoo", "pet": "1"}, 409, "Animal 1 is pending"),
    ("orders/new", "new", {"account": "zoo", "pet": "4"}, 409, "Animal 4 is sold"),
    ("orders/1", "approve", {"was": ""}, 400, _INCOMPLETE),
    ("orders/2", "deliver", {"ship_date": "2026-02-30T07:15"}, 400, "Expected a date and a time"),
    ("pets/3", "3", {"name": ""}, 400, "Expected 1 to 255 characters, got 0."),
    ("pets/3", "3", {"name": "a\x07"}, 400, "Control characters"),
    ("pets/3", "3", {"category": ""}, 400, "Choose a category, or write its number."),
    ("pets/3", "3", {"category": "Dgos"}, 400, "No category has this name."),
    ("pets/3", "3", {"category": "9223372036854775808"}, 400, _INT64),
    ("pets/3", "3", {"name": "Mia", "status": "SOLD"}, 400, "Expected one of available, pending, sold."),
    ("pets/3", "3", {"name": "Mia", "was_name": ""}, 400, _INCOMPLETE),
    ("pets/3", "3", {"name": "Mia", "was_category": ""}, 400, _INCOMPLETE),
    ("pets/3", "3", {"name": "Mia", "was_status": ""}, 400, _INCOMPLETE),
    ("pets/3", "3", {"name": "Mia", "seen": ""}, 400, _INCOMPLETE),
    ("pets/new", "new", {"name": "", "category": "1"}, 400, "Expected 1 to 255 characters, got 0."),
    ("pets/new", "new", {"name": "Mia", "category": "Dgos"}, 400, "No category has this name."),
    ("pets/new", "new", {"name": "Mia", "category": "1", "price": "1,000"}, 400, "an amount such as 12.50"),
    ("pets/new", "new", {"name": "Mia", "category": "1", "note": "x" * 2_001}, 400, "2000 characters, got"),
    ("pets/new", "new", {"name": "Mia", "category": "1", "status": "gone"}, 400, "Expected one of available"),
    *(
        ("pets/new", "new", {"name": "Mia", "category": "1", "once": mark}, 400, _INCOMPLETE)
        for mark in ("", "x" * 22, f"{0:013}.{'x' * 21}", f"{0:013}.{'x' * 21}\n")
    ),
    ("categories", "categories", {"id": "2", "name": ""}, 400, "Expected 1 to 100 characters, got 0."),
    ("categories", "categories", {"id": "2", "name": "x" * 101}, 400, "1 to 100 characters, got 101."),
    ("categories", "categories", {"id": "9223372036854775808", "name": "Cats"}, 400, _INT64),
    ("categories", "categories", {"id": "1", "name": "Cats"}, 409, "Category 1 is called Dogs now. To"),
    ("categories/1", "1", {"name": "Cats", "was": ""}, 400, _INCOMPLETE),
    ("categories/1/remove", "remove", {"was": ""}, 400, _INCOMPLETE),
    ("people/add", "add", {"name": "ümit", "role": "staff"}, 400, "use 1 to 64 letters (A to Z)"),
    ("people/add", "add", {"name": "anna", "role": "staff"}, 409, "choose another name"),
    ("people/add", "add", {"name": "ben", "role": "owner"}, 400, "Choose one of the roles"),
    ("me", "password", {"present": "wrong", "password": OTHER, "again": OTHER}, 403, "not your current"),
    ("me", "password", {"present": PASSWORD, "password": "short", "again": "short"}, 400, "at least 12"),
    ("me", "password", {"present": PASSWORD, "password": OTHER, "again": PASSWORD}, 400, "not the same"),
    (
        "me", "password", {"present": PASSWORD, "password": "anna anna anna", "again": "anna anna anna"},
        400, "too much of this password",
    ),
]  # fmt: skip
_FIRST_PAGE = "begin at the first page"
ADDRESSES = [
    ("accounts?q=pets_live_a1b2c3", 400, "There is a key in the address of this page"),
    ("search?q=pets%5Ftest_a1b2c3", 400, "There is a key in the address of this page"),
    ("accounts?q=re&after=x", 400, _FIRST_PAGE),
    ("accounts?state=gone", 400, "Choose one of active, suspended, closed."),
    ("accounts?plan=gold", 400, "Choose one of free, pro, business, enterprise."),
    ("accounts/1/keys?before=x", 400, _FIRST_PAGE),
    ("bans?after=x", 400, _FIRST_PAGE),
    ("orders?state=lost", 400, "choose one of the lists"),
    ("orders?first=last", 400, "which orders come first"),
    ("orders?after=-1", 400, _FIRST_PAGE),
    ("pets?status=SOLD", 400, "Choose one of available, pending, sold."),
    ("pets?category=dogs", 400, "Choose a category."),
    ("pets?category=9223372036854775808", 400, "Choose a category."),
    ("pets?q=a%00b", 400, "Control characters"),
    (f"pets?q={'x' * 256}", 400, "Expected 1 to 255 characters, got 256."),
    ("pets?after=x", 400, _FIRST_PAGE),
    ("journal?about=dog:7", 400, "Nothing is called 'dog:7'. Write a name, or"),
    ("journal?about=account:nobody", 404, "nobody"),
    ("journal?about=person:nobody", 404, "nobody"),
    ("journal?actor=a%00", 400, "Write a name such as console:anna"),
    ("journal?since=yesterday", 400, "'yesterday' is not a date: write it like 2026-11-22."),
    ("journal?since=2027-01-02&until=2027-01-01", 400, "The last day is before the first one."),
    ("journal?before=0", 400, _FIRST_PAGE),
    (f"journal?before={'9' * 19}", 400, _FIRST_PAGE),
    *(
        (f"{page}?{query}&form=csv", 400, told)
        for page in ("billing", "billing/bill")
        for query, told in (
            ("month=2026-13", "Write a month such as 2026-10."),
            ("month=2026-10&first=2026-10-01", "Give either a month, or a first and a last day."),
            ("first=2026-10-01", "Write a day such as 2026-10-01, or give a month."),
            ("first=2026-10-02&last=2026-10-01", "The last day is before the first one."),
            ("month=2999-01", "These days are in the future."),
            ("first=2020-01-01&last=2026-10-01", "A bill is of 366 days at most."),
        )
    ),
    ("billing/bill?month=2026-10&form=xml", 400, "Choose one of csv, json."),
    ("stock/export?form=xml", 400, "Choose CSV or JSON lines."),
    ("stock/export?status=gone", 400, "Choose one of the statuses, or all."),
    ("stock/export?category=x", 400, "No category has this name."),
    ("stock/export?key=name", 400, "can't be the column of the source keys"),
    ("people/of/nobody", 404, "nobody"),
    ("stock/7", 404, "kept for 24 hours"),
    ("stock/7/rejects", 404, "kept for 24 hours"),
]
_ID = re.compile(r"{\w+_id}")
# The first one could be of something.
NUMBERS = ("999", "01", "9223372036854775808", "9" * 5_000, "\uff11")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def anna(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Visitor]:
    """An operator with a password, in a shop with one of each thing, which nothing here changes."""
    async with open_shop(tmp_path_factory.mktemp("refusals")) as shop:
        store = shop.store
        for name in ("zoo", "shut"):
            await store.accounts.add(name, FREE, ACTOR)
        await store.keys.issue("zoo", "test", ACTOR)
        await store.accounts.close("shut", ACTOR)
        for name in ("Rex", "Tom", "Kim", "Sam"):
            await store.pets.add(NewPet(name, 1), ACTOR)
        for pet_id in (1, 2):
            await store.orders.place(2, NewOrder(pet_id), ACTOR)
        await store.orders.change(2, ACTOR, status=OrderStatus.APPROVED)
        await store.pets.change(4, PetChange(status=PetStatus.SOLD), ACTOR)
        await store.categories.name(1, "Dogs", ACTOR)
        operator = await with_password(shop, "anna", Role.OPERATOR)
        for subject, name in (("account", "zoo"), ("person", "anna")):
            await store.contacts.add(subject, name, f"{name}@example.com", ACTOR)
        yield operator


@pytest.mark.parametrize(("page", "action", "typed", "status", "told"), FORMS)
async def test_a_fault_stands_in_the_form(
    anna: Visitor, page: str, action: str, typed: dict[str, Any], status: int, told: str
) -> None:
    """The form has what was typed, but for passwords, and its mark: mended, it acts once. Nothing is changed.

    A form that no page sends is refused as a whole.
    """
    asked, before = await anna.get(page), anna.shop.fingerprint()
    form = asked.form(f"/{action}")
    if form.method == "GET":
        shown = await anna.submit(asked, form.action, **typed)
    else:
        shown = await anna.post(form.action.partition("console/")[2], {**form.fields, **typed})
    assert_refused(shown, status, told)
    if told != _INCOMPLETE:
        kept = shown.form(f"/{action}")
        assert kept.fields.get("once") == form.fields.get("once")
        for name in set(typed) - set(kept.choices):
            assert kept.fields[name] == ("" if action == "password" else typed[name])
    if action != "password":  # which counts tries
        assert anna.shop.fingerprint() == before


@pytest.mark.parametrize(("address", "status", "told"), ADDRESSES)
async def test_an_address_that_no_page_links_to(anna: Visitor, address: str, status: int, told: str) -> None:
    """The page says what is wrong beside the field, which has what was asked for, or where to begin."""
    shown = await anna.get(address)
    assert_refused(shown, status, told)
    assert "No entries match." not in shown.text
    fields = {
        name: text
        for form in shown.forms
        for name, text in form.fields.items()
        if name not in form.choices and not form.action.endswith("console/search")
    }
    for name, text in parse_qsl(address.partition("?")[2]):
        assert fields.get(name, text) in (text, text.strip())
    if address.startswith("accounts?"):
        assert_refused(await anna.get(address, headers=[("hx-request", "true")]), status, told)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:20])
async def test_a_number_that_nothing_has(anna: Visitor, number: str) -> None:
    """404, however long it is, for every page and every action."""
    fields = {"csrf": (await anna.get("me")).forms[0].fields["csrf"], "was": "Dogs", "name": "Cats"}
    for view in VIEWS:
        address = _ID.sub(number, view.path).removeprefix("/")
        if address == view.path.removeprefix("/"):
            continue
        if view.method == "GET":
            assert (await anna.get(address)).status == 404, address
        elif number != NUMBERS[0]:
            assert (await anna.post(address, fields)).status == 404, address
