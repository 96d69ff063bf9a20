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


@pytest.fixture
async def account(shop: Shop) -> str:
    """An account of which nothing is known; its page."""
    return f"accounts/{(await shop.store.accounts.add('zoo', FREE, ACTOR)).id}"


async def test_it_is_saved_shown_and_not_recorded(
    shop: Shop, account: str, staff: Visitor, viewer: Visitor
) -> None:
    """The journal says what changed and not to what. Viewers do not see it."""
    form, number = f"{account}/customer", int(account.partition("/")[2])
    shown = await staff.fill(
        form,
        form,
        name=" Anna Berg ",
        email="anna@example.com",
        phone="+49 30 1234",
        address="Berg 1\r\nBerlin",
        remark="Calls on Fridays",
    )
    assert await shop.store.customers.of(number) == ANNA
    assert "Name Anna Berg Email anna@example.com Phone +49 30 1234 Address Berg 1 Berlin" in shown.text
    assert "Account customer changed account" in shown.text
    assert "customer: name, email, phone, address, remark" in shown.text
    told = str([(entry.before, entry.after) for entry in await entries(shop.store)])
    assert not [text for text in ("Anna", "anna@", "1234", "Berlin", "Fridays") if text in told]
    assert "Anna" not in (await viewer.get(account)).text
    await staff.fill(form, form, name="", email="", phone="", address="", remark="")
    assert await shop.store.customers.of(number) == NOBODY


async def test_a_colleagues_change_is_not_overwritten(shop: Shop, account: str, staff: Visitor) -> None:
    """It stands above the form and, but for what was changed there, in it: a second try keeps both. What
    breaks a rule is named beside it."""
    form, number = f"{account}/customer", int(account.partition("/")[2])
    asked = await staff.get(form)
    await shop.store.customers.set("zoo", ANNA, ACTOR)
    shown = await staff.submit(asked, form, name="Ben", email="ben")
    assert (shown.status, shown.form(form).fields["name"]) == (400, "Ben")
    assert "Expected an address of mail such as anna@example.com." in shown.text
    shown = await staff.submit(shown, form, email="")
    assert_refused(shown, 409, "What it is now Name Anna Berg")
    await staff.submit(shown, form)
    assert await shop.store.customers.of(number) == replace(ANNA, name="Ben")


async def test_closing_deletes_it(shop: Shop, account: str, operator: Visitor) -> None:
    """The question says so; nothing more can be written."""
    form, number = f"{account}/customer", int(account.partition("/")[2])
    await shop.store.customers.set("zoo", ANNA, ACTOR)
    asked = await operator.get(form)
    question = await operator.get(f"{account}/close")
    assert "What is known of the customer is deleted" in question.text
    await operator.submit(question, f"{account}/close")
    assert await shop.store.customers.of(number) == NOBODY
    refused = await operator.submit(asked, form, name="Ben")
    assert_refused(refused, 409, "is closed for good")
