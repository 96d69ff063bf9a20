"""A day of a member of staff at the console: without JavaScript on one server, with it on replicas."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.console.browser.conftest import OpenDesk
from tests.console.browser.desk import Desk, Servers

pytestmark = [
    pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("console-browser"),
]  # fmt: skip


def test_a_day(open_desk: OpenDesk, shop: Servers) -> None:
    """From the link to the sign-out: animals, an order, a stock list, a category. Then nothing of it is shown
    again, by the server or from the browser's memory."""
    script = shop.is_balanced
    desk = open_desk(java_script_enabled=script)
    name = "anna"
    desk.arrive(name, "staff")
    _animals(desk, name)
    _order(desk)
    _stock_list(desk)
    _category(desk)
    if script:
        _show_from_memory(desk)
    desk.leave()
    desk.page.go_back()
    desk.see("Sign in")
    assert desk.faults() == []


def _show_from_memory(desk: Desk) -> None:
    """As a browser does that keeps pages; Playwright's does not. It is hidden, and loaded again."""
    heading = desk.page.get_by_role("heading", level=1)
    desk.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    expect(heading).to_be_hidden()
    desk.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(heading).to_be_visible()


def _animals(desk: Desk, name: str) -> None:
    """Add an animal, find it by the beginning of its name, correct it, and read who did."""
    desk.go("Animals")
    desk.follow("Add an animal")
    desk.fill(name=f"Bello of {name}", category="1").press("Add")
    desk.go("Animals")
    desk.fill(q="bello of").press("Search")
    desk.row(f"Bello of {name}").get_by_role("link").click()
    desk.step()
    desk.fill(name=f"Bella of {name}").press("Save")
    desk.told("Saved.")
    desk.fill(status="pending").press("Save")
    desk.told("Saved.")
    expect(desk.row("pending").first).to_contain_text(name)
    desk.fill(status="available").press("Save")
    desk.told("Saved.")


def _order(desk: Desk) -> None:
    """Sell that animal to an account: place, approve, deliver."""
    number = desk.page.url.rpartition("/")[2]
    desk.go("Orders")
    desk.follow("Place an order")
    desk.fill(account="local", pet=number).press("Place the order")
    desk.step()
    desk.press("Approve")
    desk.step()
    desk.press("Deliver")
    expect(desk.page.locator(".badge").first).to_have_text("delivered")
    desk.page.goto(f"{desk.base_url}/console/pets/{number}")
    expect(desk.page.locator(".badge").first).to_have_text("sold")


def _stock_list(desk: Desk) -> None:
    """Send a list with a bad row, read what would happen, store the good ones, keep the bad one."""
    desk.go("Stock lists")
    rows = b"name,categoryId,status\nMinka,1,\nNobody,seven,\n"
    desk.page.set_input_files("[name=list]", {"name": "stock.csv", "mimeType": "text/csv", "buffer": rows})
    desk.press("Send and check")
    desk.wait_for("Rejected rows")
    expect(desk.row("Nobody")).to_contain_text("categoryId")
    desk.step()
    desk.press("Store the good row")
    desk.wait_for("See the entries in the journal")
    with desk.page.expect_download() as waited:
        desk.follow("Download all of them")
    assert "Nobody,seven" in waited.value.path().read_text()
    desk.go("Animals")
    desk.fill(q="minka").press("Search")
    expect(desk.row("Minka")).to_contain_text("available")


def _category(desk: Desk) -> None:
    desk.go("Categories")
    desk.fill(id="1", name="Dogs").press("Name it")
    expect(desk.row("Dogs")).to_be_visible()
