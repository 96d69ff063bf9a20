"""A day of an operator at the console, without JavaScript, on replicas."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from petstore.core.keys import KEY_PATTERN
from tests.console.browser.conftest import OpenDesk
from tests.console.browser.desk import PASSWORD, Desk
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("console-browser"),
    pytest.mark.parametrize("shop", ["replicas"], indirect=True),
]  # fmt: skip

_STRIKES = 70  # with a limit of one a minute, enough 429s for a ban


def test_an_operators_day_needs_no_script(open_desk: OpenDesk) -> None:
    """Accounts and keys, a ban, the journal, the service, another person; no box that needs a script."""
    desk = open_desk(java_script_enabled=False)
    name, account = "olga", "zoo"
    desk.arrive(name, "operator")
    key = _new_account(desk, account)
    key = _rotate_and_revoke(desk, account, key)
    _unban(desk, account, key)
    desk.go("Journal")
    desk.fill(actor=f"console:{name}", about=f"account:{account}").press("Show")
    expect(desk.row("plan").first).to_contain_text(name)
    desk.go("Service")
    expect(desk.page.locator("main")).to_contain_text("PostgreSQL")
    desk.go("Animals")
    desk.follow("Add an animal")
    desk.fill(name="Castor", category="1").press("Add")
    desk.go("Animals")
    expect(desk.page.locator(".choose input[name]")).to_be_visible()
    expect(desk.page.locator("[data-all]")).to_be_hidden()
    _another_person(desk, open_desk, "nils")
    desk.leave()
    assert desk.faults() == []


def _new_account(desk: Desk, account: str) -> str:
    """Add an account on the smallest plan, and issue a key, which is shown once."""
    desk.go("Accounts")
    desk.follow("Add an account")
    desk.fill(name=account, plan="enterprise", per_minute="500", per_day="500").press("Add")
    desk.see(account)
    desk.step()
    desk.follow("Issue a key")
    desk.fill(label="tills").press("Issue the key")
    key = desk.page.locator("#key-text").inner_text()
    assert re.fullmatch(KEY_PATTERN, key)
    desk.follow("Done")
    assert key not in desk.page.content()
    assert desk.shop.ask(key).status == 200
    desk.step()
    desk.follow("Change plan")
    desk.fill(plan="pro", per_minute="", per_day="").press("Change the plan")
    desk.told("pro")
    # A replica whose Valkey answers late on a busy machine counts alone for a moment, with its share.
    wait_for(lambda: desk.shop.ask(key).headers["x-ratelimit-limit"] == "300", "the new plan")
    return key


def _rotate_and_revoke(desk: Desk, account: str, key: str) -> str:
    """A successor at once; then revoke it too, and issue another one."""
    desk.row("tills").get_by_role("link", name="Rotate").click()
    desk.fill(overlap="0").press("Rotate")
    successor = desk.page.locator("#key-text").inner_text()
    assert (desk.shop.ask(key).status, desk.shop.ask(successor).status) == (401, 200)
    desk.follow("Done")
    desk.step()
    desk.row("active").get_by_role("link", name="Revoke").click()
    desk.press("Revoke for good")
    assert desk.shop.ask(successor).status == 401
    desk.follow("Issue a key")
    desk.fill(label="counter").press("Issue the key")
    another = desk.page.locator("#key-text").inner_text()
    desk.follow("Done")
    return another


def _unban(desk: Desk, account: str, key: str) -> None:
    """A program that goes on after its 429s is banned, until an operator ends that."""
    desk.step()
    desk.follow("Change plan")
    desk.fill(plan="enterprise", per_minute="1", per_day="500").press("Change the plan")
    for _ in range(2 * _STRIKES):
        if _is_banned(desk, key):
            break
    desk.go("Bans")

    def is_shown() -> bool:
        desk.shop.ask(key)
        desk.page.reload()
        return desk.row(account).count() > 0

    wait_for(is_shown, "the ban to be saved")
    desk.row(account).get_by_role("button", name="Unban").click()
    expect(desk.page.locator(".good")).to_be_visible()
    wait_for(lambda: not _is_banned(desk, key), "the end of the ban")


def _is_banned(desk: Desk, key: str) -> bool:
    """Whether a request meets a ban. It is admitted where a new minute has just begun."""
    answer = desk.shop.ask(key)
    return answer.status != 200 and answer.json()["code"] == "key_banned"


def _another_person(desk: Desk, open_desk: OpenDesk, name: str) -> None:
    """Add somebody, who comes in by the link; disable them, which acts on their next request."""
    desk.go("People")
    desk.follow("Add a person")
    desk.fill(name=name, role="staff").press("Add and show the link")
    link = desk.page.locator("#link").inner_text()
    theirs = open_desk()
    theirs.page.goto(link)
    theirs.fill(password=PASSWORD, again=PASSWORD).press("Set the password and sign in")
    theirs.see("Overview")
    desk.go("People")
    desk.follow(name)
    desk.follow("Disable")
    desk.press(f"Disable {name}")
    theirs.step()
    theirs.page.reload()
    theirs.see("Sign in")
