"""Every page and action of the console, from its own table, by people who may not use it: nothing happens."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.console.visit import View
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from tests.support.console import Shown, Visitor, recorded_consoles
from tests.support.journal import ACTOR
from tests.support.service import Shop, open_shop

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
_MULTIPART = ("content-type", "multipart/form-data; boundary=b")


@pytest.fixture
async def walked(tmp_path: Path) -> AsyncIterator[tuple[Shop, list[View]]]:
    """A shop with one of each thing, and the table of its console."""
    with recorded_consoles() as consoles:
        async with open_shop(tmp_path) as shop:
            await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
            await shop.store.pets.add(NewPet("Mia", 1), ACTOR)
            await shop.store.accounts.add("customer", FREE, ACTOR)
            await shop.store.orders.place(1, NewOrder(1), ACTOR)
            await shop.store.categories.name(1, "Dogs", ACTOR)
            yield shop, consoles[0].views()


def address_of(view: View) -> str:
    """An address of this view, below the console; each parameter is 1."""
    return _PARAMETER.sub("1", view.path).removeprefix("/")


def named(view: View) -> str:
    return f"{view.method} {view.path}"


def content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the database."""
    with closing(apsw.Connection(str(path))) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {name: list(connection.execute(f'SELECT * FROM "{name}"')) for name in tables}


async def asks(visitor: Visitor, view: View, **fields: str) -> Shown:
    if view.method == "GET":
        return await visitor.get(address_of(view), follow=False)
    headers = () if view.reads_form else (_MULTIPART,)
    return await visitor.post(address_of(view), fields, headers=headers, follow=False)


async def test_the_table_is_what_is_served(walked: tuple[Shop, list[View]]) -> None:
    """No page is served that the walk does not know, and each path takes its own methods alone."""
    shop, views = walked
    visitor = await Visitor(shop).sign_in_as("operator", "table")
    by_path: dict[str, set[str]] = {}
    for view in views:
        assert view.method in ("GET", "POST"), named(view)
        by_path.setdefault(address_of(view), set()).add(view.method)
    for path, methods in by_path.items():
        if methods == {"POST"}:
            assert (await visitor.get(path, follow=False)).status == 405, path
        if methods == {"GET"}:
            assert (await visitor.post(path, {}, follow=False)).status == 405, path
    assert len(by_path) > 10


async def test_without_a_session_a_browser_signs_in_and_a_program_gets_401(
    walked: tuple[Shop, list[View]],
) -> None:
    """Whatever the page; only signing in and one-time links need no session. A key is no session."""
    shop, views = walked
    stranger = Visitor(shop)
    key = ("authorization", f"Bearer {shop.key}")
    for view in views:
        if view.role is None:
            assert view.path.startswith(("/sign-in", "/link/")), named(view)
            continue
        shown = await asks(stranger, view)
        if view.method == "GET":
            assert shown.status == 303, named(view)
            assert "/console/sign-in" in shown.headers["location"], named(view)
            program = await stranger.get(address_of(view), headers=[("accept", "*/*"), key], follow=False)
            assert program.status == 401, named(view)
        else:
            assert shown.status == 401, named(view)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.STAFF])
async def test_a_lesser_role_is_refused(walked: tuple[Shop, list[View]], role: Role) -> None:
    """403, before the page's own code: also for things that do not exist."""
    shop, views = walked
    visitor = await Visitor(shop).sign_in_as(role, f"lesser-{role}")
    before = content(shop.path)
    refused = [view for view in views if view.role is not None and not role.includes(view.role)]
    for view in refused:
        assert (await asks(visitor, view)).status == 403, named(view)
    assert refused
    assert content(shop.path) == before


@pytest.mark.parametrize("token", ["", "x", "0" * 96], ids=["none", "short", "wrong"])
async def test_without_a_forms_token_nothing_changes(walked: tuple[Shop, list[View]], token: str) -> None:
    """Each action, by an operator, with a token that is missing or wrong: 403, with what to do."""
    shop, views = walked
    visitor = await Visitor(shop).sign_in_as("operator", f"token-{len(token)}")
    stranger = Visitor(shop)
    await stranger.get("sign-in")
    before = content(shop.path)
    for view in views:
        if view.method == "POST":
            shown = await asks(stranger if view.role is None else visitor, view, csrf=token)
            assert shown.status == 403, named(view)
            assert "Load its page again" in shown.text, named(view)
    assert content(shop.path) == before


async def test_another_sites_form_is_refused_with_the_right_token(walked: tuple[Shop, list[View]]) -> None:
    """By Sec-Fetch-Site, and by Origin of older browsers: 403 for each action, and nothing changes."""
    shop, views = walked
    visitor = await Visitor(shop).sign_in_as("operator", "crossed")
    token = (await visitor.get("me")).form("me/password").fields["csrf"]
    before = content(shop.path)
    for headers in (
        [("sec-fetch-site", "cross-site")],
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://[")],
    ):
        for view in views:
            if view.method == "POST":
                sent = [*headers, *(() if view.reads_form else (_MULTIPART,))]
                shown = await visitor.post(address_of(view), {"csrf": token}, headers=sent, follow=False)
                assert (shown.status, "Another site" in shown.text) == (403, True), named(view)
    assert content(shop.path) == before
