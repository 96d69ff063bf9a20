"""What staff know of the customer behind an account."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from petstore.core.customers import NOBODY, Customer
from petstore.core.limits.plans import FREE
from tests.console.conftest import assert_refused
from tests.support.console import Visitor
from tests.support.journal import ACTOR, entries
from tests.support.service import Shop

ANNA = Customer("Anna Berg", "anna@example.com", "+49 30 1234", "Berg 1\nBerlin", "Calls on Fridays")


FORM = "accounts/2/customer"


@pytest.fixture(autouse=True)
async def zoo(shop: Shop) -> None:
    """Account 2, of which nothing is known."""
    await shop.store.accounts.add("zoo", FREE, ACTOR)


async def test_it_is_saved_shown_and_not_recorded(shop: Shop, staff: Visitor, viewer: Visitor) -> None:
    """The journal says what changed and not to what. Viewers do not see it."""
    shown = await staff.fill(
        FORM,
        FORM,
        name=" Anna Berg ",
        email="anna@example.com",
        phone="+49 30 1234",
        address="Berg 1\r\nBerlin",
        remark="Calls on Fridays",
    )
    assert await shop.store.customers.of(2) == ANNA
    assert "Name Anna Berg Email anna@example.com Phone +49 30 1234 Address Berg 1 Berlin" in shown.text
    assert "Account customer changed account" in shown.text
    assert "customer: name, email, phone, address, remark" in shown.text
    told = str([(entry.before, entry.after) for entry in await entries(shop.store)])
    assert not [text for text in ("Anna", "anna@", "1234", "Berlin", "Fridays") if text in told]
    assert "Anna" not in (await viewer.get("accounts/2")).text
    await staff.fill(FORM, FORM, name="", email="", phone="", address="", remark="")
    assert await shop.store.customers.of(2) == NOBODY


async def test_a_colleagues_change_is_not_overwritten(shop: Shop, staff: Visitor) -> None:
    """It stands above the form and, but for what was changed there, in it: a second try keeps both. What
    breaks a rule is named beside it."""
    asked = await staff.get(FORM)
    await shop.store.customers.set("zoo", ANNA, ACTOR)
    shown = await staff.submit(asked, FORM, name="Ben", email="ben")
    assert (shown.status, shown.form(FORM).fields["name"]) == (400, "Ben")
    assert "Expected an email address such as anna@example.com." in shown.text
    shown = await staff.submit(shown, FORM, email="")
    assert_refused(shown, 409, "What it is now Name Anna Berg")
    await staff.submit(shown, FORM)
    assert await shop.store.customers.of(2) == replace(ANNA, name="Ben")


async def test_closing_deletes_it(shop: Shop, operator: Visitor) -> None:
    """The question says so; nothing more can be written."""
    await shop.store.customers.set("zoo", ANNA, ACTOR)
    asked = await operator.get(FORM)
    question = await operator.get("accounts/2/close")
    assert "The customer's name, mail, phone, address and remark are deleted" in question.text
    await operator.submit(question, "accounts/2/close")
    assert await shop.store.customers.of(2) == NOBODY
    refused = await operator.submit(asked, FORM, name="Ben")
    assert_refused(refused, 409, "is closed for good")
