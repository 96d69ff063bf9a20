"""Every page and action of the console, by people who may not use it: nothing happens.

Who may do what stands here once; tests of the pages do not repeat it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from urllib.parse import unquote

import pytest

from petstore.console.app import VIEWS
from petstore.console.visit import View
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from tests.support.console import Shown, Visitor
from tests.support.console_places import PLACES
from tests.support.failing_webhooks import add_webhook
from tests.support.journal import ACTOR
from tests.support.service import Shop, open_shop

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
# A form, and one with a file: each kind is refused in one place.
_SOME = [view for view in VIEWS if view.path in ("/people/add", "/stock")]
_MULTIPART = ("content-type", "multipart/form-data; boundary=b")


def contacts(page: str) -> dict[str, str]:
    """What is done with the contacts on a page."""
    return dict.fromkeys((f"{page}/contacts{each}" for each in ("", "/remove", "/kinds")), "POST")


# The least role for each page (GET) and action (POST).
RIGHTS: dict[Role | None, dict[str, str]] = {
    None: {"/sign-in": "GET POST", "/link/{token}": "GET POST"},
    Role.VIEWER: {
        "": "GET",
        "/sign-out": "POST",
        "/me": "GET",
        "/me/password": "POST",
        "/me/sessions/{session}/end": "POST",
        "/me/sign-out-everywhere": "POST",
        "/me/time-zone": "POST",
        **contacts("/me"),
        "/search": "GET POST",
        "/pick/{kind}": "GET",
        **dict.fromkeys(
            (
                f"/{page}.csv"
                for page in ("pets", "orders", "accounts", "accounts/{account_id}/keys", "journal", "bans")
            ),
            "GET",
        ),
        "/pets": "GET",
        "/pets/{pet_id}": "GET",
        "/pets/{pet_id}/label": "GET",
        "/categories": "GET",
        "/categories/{category_id}": "GET",
        "/orders": "GET",
        "/orders/{order_id}": "GET",
        "/orders/{order_id}/note": "GET",
        "/stock": "GET",
        "/stock/export": "GET",
        "/stock/{upload_id}": "GET",
        "/stock/{upload_id}/rejects": "GET",
        "/accounts": "GET",
        "/accounts/{account_id}": "GET",
        "/accounts/{account_id}/keys": "GET",
        "/keys/{key_id}": "GET",
        "/webhooks/{webhook_id}": "GET",
        "/bans": "GET",
        "/journal": "GET",
        "/events": "GET",
        "/service": "GET",
    },
    Role.STAFF: {
        "/several/pet": "POST",
        "/several/order": "POST",
        "/undo": "POST",
        "/pets/new": "GET POST",
        "/pets/{pet_id}": "POST",
        "/pets/{pet_id}/remove": "GET POST",
        "/categories": "POST",
        "/categories/{category_id}": "POST",
        "/categories/{category_id}/remove": "GET POST",
        "/orders/new": "GET POST",
        "/orders/{order_id}/approve": "POST",
        "/orders/{order_id}/comment": "POST",
        "/orders/{order_id}/deliver": "POST",
        "/orders/{order_id}/cancel": "GET POST",
        "/accounts/{account_id}/customer": "GET POST",
        "/journal/{list_id}/taking-back": "GET POST",
        "/stock": "POST",
        "/stock/{upload_id}/columns": "GET POST",
        "/stock/{upload_id}/check": "POST",
        "/stock/{upload_id}/store": "POST",
        "/stock/{upload_id}/discard": "POST",
    },
    Role.OPERATOR: {
        "/accounts/new": "GET POST",
        "/accounts/{account_id}/plan": "GET POST",
        "/accounts/{account_id}/rename": "GET POST",
        "/accounts/{account_id}/suspend": "GET POST",
        "/accounts/{account_id}/resume": "POST",
        "/accounts/{account_id}/close": "GET POST",
        "/several/key": "POST",
        "/accounts/{account_id}/keys/new": "GET POST",
        **contacts("/accounts/{account_id}"),
        "/keys/{key_id}/rotate": "GET POST",
        "/keys/{key_id}/revoke": "GET POST",
        "/keys/{key_id}/unban": "POST",
        **dict.fromkeys(
            (f"/webhooks/{{webhook_id}}/{each}" for each in ("disable", "enable", "retry")), "POST"
        ),
        "/billing": "GET",
        "/billing/bill": "GET",
        "/accounts/{account_id}/bill": "GET",
        "/people": "GET",
        "/people/add": "GET POST",
        "/people/of/{name}": "GET",
        "/people/of/{name}/role": "POST",
        "/people/of/{name}/disable": "GET POST",
        "/people/of/{name}/enable": "POST",
        "/people/of/{name}/reset": "GET POST",
        "/people/of/{name}/sign-out-everywhere": "POST",
        **contacts("/people/of/{name}"),
    },
}
LEAST = {
    (method, path): role
    for role, paths in RIGHTS.items()
    for path, methods in paths.items()
    for method in methods.split()
}


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop with one of each thing."""
    async with open_shop(tmp_path) as opened:
        await opened.store.pets.add(NewPet("Rex", 1), ACTOR)
        await opened.store.pets.add(NewPet("Mia", 1), ACTOR)
        await opened.store.accounts.add("customer", FREE, ACTOR)
        await opened.store.orders.place(1, NewOrder(1), ACTOR)
        await opened.store.categories.name(1, "Dogs", ACTOR)
        await add_webhook(opened.store)
        yield opened


def address_of(view: View) -> str:
    """An address of this view, below the console; each parameter is 1."""
    return _PARAMETER.sub("1", view.path).removeprefix("/")


def named(view: View) -> str:
    return f"{view.method} {view.path}"


async def asks(visitor: Visitor, view: View, **fields: str) -> Shown:
    if view.method == "GET":
        return await visitor.get(address_of(view), follow=False)
    if not view.reads_form:
        return await visitor.send_file(address_of(view), "list", b"x", fields, file="x.csv", follow=False)
    return await visitor.post(address_of(view), fields, follow=False)


async def test_the_table_is_what_is_served(shop: Shop) -> None:
    """Each page and action takes the role that it has in this file, and each path its own methods alone.
    Tests that open every page have an address for each."""
    assert {(view.method, view.path): view.role for view in VIEWS} == LEAST
    assert {view.path for view in VIEWS if view.method == "GET"} == set(PLACES)
    visitor = await Visitor(shop).sign_in_as("operator", "table")
    by_path: dict[str, set[str]] = {}
    for view in VIEWS:
        by_path.setdefault(address_of(view), set()).add(view.method)
    for path, methods in by_path.items():
        if methods == {"POST"}:
            assert (await visitor.get(path, follow=False)).status == 405, path
        if methods == {"GET"}:
            assert (await visitor.post(path, {}, follow=False)).status == 405, path


async def test_without_a_session_a_browser_signs_in_and_a_program_gets_401(shop: Shop) -> None:
    """It holds for each page, at any depth; only signing in and one-time links need no session. A
    key is not a session."""
    stranger = Visitor(shop)
    pages = {address_of(view) for view in VIEWS if view.method == "GET"}
    key = ("authorization", f"Bearer {shop.key}")
    for view in VIEWS:
        if LEAST[view.method, view.path] is None:
            continue
        shown = await asks(stranger, view)
        assert shown.status == 303, named(view)
        sign_in, _, page = shown.headers["location"].partition("?next=")
        depth = len(address_of(view).split("/")) if address_of(view) else 0
        assert sign_in == ("../" * depth or "./") + "console/sign-in", named(view)
        assert unquote(page) in pages, named(view)
        headers = [("accept", "*/*"), key]
        if view.method == "GET":
            program = await stranger.get(address_of(view), headers=headers, follow=False)
        else:
            program = await stranger.post(address_of(view), {}, headers=headers, follow=False)
        assert program.status == 401, named(view)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.STAFF])
async def test_a_lesser_role_is_refused(shop: Shop, role: Role) -> None:
    """403 with a valid token too, before the page's own code: also for things that do not exist."""
    visitor = await Visitor(shop).sign_in_as(role, f"lesser-{role}")
    token = await token_of(visitor)
    before = shop.fingerprint()
    for view in VIEWS:
        least = LEAST[view.method, view.path]
        if least is not None and not role.includes(least):
            shown = await asks(visitor, view, csrf=token)
            assert (shown.status, f"takes the role {least}" in shown.text) == (403, True), named(view)
    assert shop.fingerprint() == before


async def token_of(visitor: Visitor, page: str = "me") -> str:
    """The token in a form of the page."""
    return (await visitor.get(page)).forms[0].fields["csrf"]


@pytest.mark.parametrize("token", [None, "0" * 96], ids=["none", "wrong"])
async def test_without_a_forms_token_nothing_changes(shop: Shop, token: str | None) -> None:
    """Each action, by an operator, with a token that is missing or wrong: 403, with what to do."""
    visitor = await Visitor(shop).sign_in_as("operator")
    await assert_nothing_changes(shop, visitor, token)


async def test_a_token_is_of_its_session_alone(shop: Shop) -> None:
    """A token is refused if it is a colleague's, or the same person's of another session, or that of the page
    on which they signed in, or a part of one."""
    visitor = Visitor(shop)
    before_session = await token_of(visitor, "sign-in")
    await visitor.sign_in_as("operator", "olga")
    colleague = await Visitor(shop).sign_in_as("operator", "oscar")
    elsewhere, sign_ins = Visitor(shop), shop.store.sign_ins
    attempt = await sign_ins.take_attempt("olga", "127.0.0.1")
    elsewhere.cookies["petstore-session"] = await sign_ins.accept(attempt, "127.0.0.1", None)
    for token in (before_session, await token_of(colleague), await token_of(elsewhere), "", "x"):
        await assert_nothing_changes(shop, visitor, token, _SOME)


async def assert_nothing_changes(
    shop: Shop, visitor: Visitor, token: str | None, views: Iterable[View] = VIEWS
) -> None:
    """Whatever the visitor sends with this token, or without one; a stranger sends what needs no session."""
    stranger, fields = Visitor(shop), {} if token is None else {"csrf": token}
    await stranger.get("sign-in")
    before = shop.fingerprint()
    for view in views:
        if view.method == "POST":
            shown = await asks(stranger if view.role is None else visitor, view, **fields)
            assert shown.status == 403, named(view)
            assert "Load its page again" in shown.text, named(view)
    assert shop.fingerprint() == before


async def test_another_sites_form_is_refused_with_the_right_token(shop: Shop) -> None:
    """Sec-Fetch-Site tells, and Origin of older browsers: 403 for each action, and nothing changes."""
    visitor = await Visitor(shop).sign_in_as("operator", "crossed")
    token = await token_of(visitor)
    before = shop.fingerprint()
    for headers in (
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],  # another host below the same domain
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://[")],
    ):
        for view in VIEWS if headers[0][1] in ("cross-site", "null") else _SOME:
            if view.method == "POST":
                sent = [*headers, *(() if view.reads_form else (_MULTIPART,))]
                shown = await visitor.post(address_of(view), {"csrf": token}, headers=sent, follow=False)
                assert (shown.status, "Another site" in shown.text) == (403, True), named(view)
    assert shop.fingerprint() == before
