"""A form that was not accepted is not lost: where its answer leads, and what `forms.js` is told."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from petstore.core.errors import StoreUnavailable
from tests.console.conftest import PASSWORD, assert_refused, signs_in
from tests.support.console import Shown, Visitor
from tests.support.service import Shop

SCRIPT = [("accept", "*/*"), ("x-by-script", "1")]


async def form_of(visitor: Visitor, page: str, action: str, **typed: str) -> dict[str, str]:
    """The fields of a page's form, filled in."""
    return {**(await visitor.get(page)).form(action).fields, **typed}


def begins_anew(shown: Shown) -> bool:
    """Whether the page tells the script to load the form's page again."""
    return b'data-refusal="begins-anew"' in shown.body


async def test_the_sign_in_leads_back_to_the_forms_page(shop: Shop, anna: Visitor) -> None:
    """It does from an action that is not a page itself too. It says that nothing was saved."""
    fields = await form_of(anna, "pets/new", "pets/new", name="Mia", category="1")
    anna.cookies.clear()
    for action, page in (
        ("pets/new", "pets/new"),
        ("pets/7/remove", "pets/7/remove"),
        ("orders/7/approve", "orders/7"),
    ):
        shown = await anna.post(action, fields, follow=False)
        assert (shown.status, unquote(shown.headers["location"]).partition("next=")[2]) == (303, page)
    shown = await anna.post("pets/new", fields)
    assert "nothing was saved" in shown.text
    shown = await anna.submit(shown, "sign-in", name="anna", password=PASSWORD)
    assert (shown.address, shown.form("pets/new").fields["name"]) == ("/console/pets/new", "")
    assert shop.pets() == []


async def test_a_script_is_told_what_a_browser_would_do(shop: Shop, anna: Visitor) -> None:
    """204 with the address instead of a redirect; the page itself of a form with a fault."""
    fields = await form_of(anna, "pets/new", "pets/new", name="", category="1")
    shown = await anna.post("pets/new", fields, headers=SCRIPT)
    assert_refused(shown, 400, "got 0")
    shown = await anna.post("pets/new", {**fields, "name": "Mia"}, headers=SCRIPT)
    assert (shown.status, shown.headers["location"], shown.body) == (204, "../../console/pets/1", b"")
    assert "Animal 1 is added." in (await anna.get("pets/1")).text


async def test_a_script_is_told_that_the_session_is_another(shop: Shop, anna: Visitor) -> None:
    """A form sent without its session, or in a later or a colleague's, saves nothing and begins anew."""
    fields = await form_of(anna, "pets/new", "pets/new", name="Mia", category="1")
    anna.cookies.clear()
    shown = await anna.post("pets/new", fields, headers=SCRIPT)
    assert (shown.status, begins_anew(shown)) == (401, True)
    await signs_in(anna)
    for visitor in (anna, await Visitor(shop).sign_in_as("staff", "ben")):
        shown = await visitor.post("pets/new", fields, headers=SCRIPT)
        assert (shown.status, begins_anew(shown), shown.links["Back to the form"]) == (
            403,
            True,
            "../../console/pets/new",
        )
    assert not begins_anew(await anna.get("people"))
    assert shop.pets() == []


async def test_a_script_never_gets_a_secret(shop: Shop, operator: Visitor) -> None:
    """204 without an address lets the browser itself send the form: its answer has a key or a link, or there
    is a file in it. Until then nothing is done."""
    for page, typed in (
        ("accounts/1/keys/new", {}),
        ("keys/1/rotate", {"overlap": "0"}),
        ("people/add", {"name": "ben", "role": "staff"}),
        ("people/of/a-operator/reset", {}),
        ("stock", {}),
    ):
        before = shop.fingerprint()
        fields = await form_of(operator, page, page, **typed)
        shown = await operator.post(page, fields, headers=SCRIPT)
        assert (shown.status, shown.body, "location" in shown.headers) == (204, b"", False), page
        shown = await operator.post(page, {**fields, "csrf": "x"}, headers=SCRIPT)
        assert (shown.status, begins_anew(shown)) == (403, True), page
        assert shop.fingerprint() == before


async def test_a_form_that_the_store_refuses_can_be_sent_again(
    shop: Shop, anna: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503, by a reload of that page: the browser sends the same fields, and the mark lets them act once."""
    fields = await form_of(anna, "pets/new", "pets/new", name="Mia", category="1")
    with monkeypatch.context() as away:

        async def fail(*_: object) -> None:
            raise StoreUnavailable("The database is away.")

        away.setattr(shop.store.pets, "add", fail)
        shown = await anna.post("pets/new", fields)
    assert (shown.status, shown.links["Back to the form"]) == (503, "../../console/pets/new")
    assert "as you filled it in, load this page again" in shown.text
    assert (await anna.post("pets/new", fields)).address == "/console/pets/1"
