"""A day of a member of staff at the console, with JavaScript, on one server."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.console.browser.conftest import OpenDesk
from tests.console.browser.desk import PASSWORD, Desk

pytestmark = [
    pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("console-browser"),
    pytest.mark.parametrize("shop", ["sqlite"], indirect=True),
]  # fmt: skip


# The width of the choice of a category, and the lines of a price, beside texts that need all the width.
_LONG_TEXTS = """
() => {
  const choice = document.querySelector(".several select"), [row] = document.querySelectorAll("tbody tr");
  choice.add(new Option("W".repeat(60)));
  row.querySelector("bdi").textContent = "W".repeat(255);
  const price = row.querySelector("td:last-child");
  price.innerHTML = "<bdi>999999999.99</bdi>";
  return [choice.offsetWidth, price.firstChild.getClientRects().length];
}
"""


def test_nothing_of_a_staff_members_day_is_shown_after_the_sign_out(open_desk: OpenDesk) -> None:
    """The day has animals, an order, a stock list and a category. Then nothing of it is shown
    again, by the server or from the browser's memory."""
    desk = open_desk(timezone_id="Asia/Tokyo")
    name = "anna"
    desk.arrive(name, "staff")
    _animals(desk, name)
    _order(desk)
    _stock_list(desk)
    _several(desk)
    _category(desk)
    _unanswered(desk)
    _signed_out_meanwhile(desk, name)
    _time_zone(desk)
    _show_from_memory(desk)
    desk.leave()
    desk.page.go_back()
    desk.see("Sign in")
    assert desk.faults() == []


def _show_from_memory(desk: Desk) -> None:
    """Act as a browser that keeps pages, as Playwright's does not: the page is hidden and loaded again."""
    heading = desk.page.get_by_role("heading", level=1)
    desk.page.wait_for_load_state()  # a script hides it
    desk.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    expect(heading).to_be_hidden()
    desk.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(heading).to_be_visible()


def _unanswered(desk: Desk) -> None:
    """A form stays as it is without a network, or without the database; sent again, it acts once."""
    page, form = desk.page, "**/console/pets/new"
    desk.go("Animals")
    desk.follow("Add an animal")
    desk.fill(name="Nemo", category="1")
    page.route(form, lambda route: route.abort())
    desk.press("Add")
    expect(page.get_by_role("alert")).to_contain_text("could not be reached. Your text is still here")
    page.unroute(form)
    # It acts, and its answer is lost.
    page.route(form, lambda route: (route.fetch(max_redirects=0), route.fulfill(status=503)))
    desk.press("Add")
    expect(page.get_by_role("alert")).to_contain_text("could not be reached. Your text is still here")
    page.unroute(form)
    assert page.locator("[name=name]").input_value() == "Nemo"
    desk.fill(category="none").press("Add")
    expect(page.locator("[name=category]")).to_be_focused()
    desk.complaints.clear()
    desk.fill(category="1").press("Add")
    desk.told("was added already")


def _signed_out_meanwhile(desk: Desk, name: str) -> None:
    """The form comes back to the same person, about what it showed; nothing of it to anybody else."""
    page, number = desk.page, desk.page.url.rpartition("/")[2]
    other = page.context.new_page()
    other.goto(page.url)
    other.fill("[name=name]", "Dory")
    other.get_by_role("button", name="Save", exact=True).click()
    expect(other.locator(".good")).to_contain_text("Saved.")
    assert "Nemo of" in _left_behind(desk, "Save", name=f"Nemo of {name}")
    _come_back(desk, name)
    assert page.locator("[name=name]").input_value() == f"Nemo of {name}"
    desk.press("Save")
    desk.see(re.compile(f"· Animal {number} has changed meanwhile"))
    desk.press("Save mine")
    desk.told("Saved.")
    assert desk.shop.key not in _left_behind(desk, "Save", name=f"Nemo {desk.shop.key}")
    _come_back(desk, name)
    page.goto(f"{desk.base_url}/console/me")
    typed = {"present": PASSWORD, "password": PASSWORD, "again": PASSWORD}
    assert PASSWORD not in _left_behind(desk, "Change the password", **typed)
    page.goto(desk.shop.link_for("ben", "staff"))
    desk.fill(password=PASSWORD, again=PASSWORD).press("Set the password and sign in")
    desk.see("Overview")
    assert _drafts(desk) == {}
    desk.complaints.clear()


def _left_behind(desk: Desk, button: str, **typed: str) -> str:
    """What the browser keeps of a form that is sent after its session has ended."""
    desk.fill(**typed)
    desk.page.context.clear_cookies()
    desk.press(button)
    desk.see("Sign in")
    expect(desk.page.get_by_role("alert")).to_contain_text("comes back when you have signed in again")
    ((_, draft),) = _drafts(desk).items()
    assert "csrf" not in draft
    return draft


def _come_back(desk: Desk, name: str) -> None:
    desk.fill(name=name, password=PASSWORD).press("Sign in")
    expect(desk.page.get_by_role("alert")).to_contain_text("Your text is here again; nothing was saved yet.")
    assert _drafts(desk) == {}


def _drafts(desk: Desk) -> dict[str, str]:
    kept: dict[str, str] = desk.page.evaluate("({...sessionStorage})")
    return {key: text for key, text in kept.items() if key.startswith("draft:")}


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
    """Sell that animal to an account: choose both by their names; place, approve, deliver."""
    number = desk.page.url.rpartition("/")[2]
    desk.go("Orders")
    desk.follow("Place an order")
    field = desk.page.get_by_role("combobox", name="Account")
    field.press_sequentially("oca")
    expect(desk.page.get_by_role("option", name="local")).to_be_visible()
    field.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "account-picks-choice-1")
    field.press("Enter")
    expect(field).to_have_value("local")
    pet = desk.page.get_by_role("combobox", name="Animal")
    pet.fill(number)
    desk.page.get_by_role("option").first.click()
    expect(pet).to_have_value(re.compile(f"{number} · .+"))
    expect(desk.page.get_by_role("listbox")).to_have_count(0)
    _scan(desk, pet, number)
    for step in ("Approve", "Deliver"):
        desk.step()
        desk.press(step)
    expect(desk.page.locator(".badge").first).to_have_text("delivered")
    desk.page.goto(f"{desk.base_url}/console/pets/{number}")
    expect(desk.page.locator(".badge").first).to_have_text("sold")


def _scan(desk: Desk, field: Locator, number: str) -> None:
    """A scanner ends with Enter before there is a list for its text: the one of an earlier text chooses
    nothing."""
    field.fill("a")
    expect(desk.page.get_by_role("option")).to_be_visible()
    field.press("ArrowDown")
    desk.page.route(f"**/pick/pets?q={number}", lambda route: route.fulfill(status=204))
    field.fill(number)
    field.press("Enter")
    desk.told("is placed.")


def _stock_list(desk: Desk) -> None:
    """Send a list with a bad row, read what would happen, store the good ones, keep the bad one."""
    desk.go("Stock lists")
    rows = b"name,categoryId,status\nMinka,1,\nNobody,seven,\n"
    file = {"name": "stock.csv", "mimeType": "text/csv", "buffer": rows}
    desk.page.set_input_files("[name=list]", file)  # type: ignore[arg-type]
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


def _time_zone(desk: Desk) -> None:
    """The browser's own is offered, also when a form of the page was refused, until it is the person's."""
    desk.page.get_by_role("navigation", name="You").get_by_role("link").click()
    desk.fill(time_zone="Atlantis").press("Save")
    expect(desk.page.locator("#zones option[value='Asia/Tokyo']")).to_have_count(1)
    desk.complaints.clear()  # of the refused form
    expect(desk.page.locator("#browser-zone")).to_contain_text("Your browser says Asia/Tokyo.")
    desk.press("Use it")
    desk.told("Saved.")
    expect(desk.page.locator("#browser-zone")).to_be_hidden()
    expect(desk.page.locator("[name=time_zone]")).to_have_value("Asia/Tokyo")


def _several(desk: Desk) -> None:
    """Choose animals with Shift, sell them at once, and undo it."""
    desk.go("Animals")
    desk.follow("Add an animal")
    desk.fill(name="Castor", category="1").press("Add, then another one")
    desk.fill(name="Pollux", category="1").press("Add")
    desk.page.goto(f"{desk.base_url}/console/pets?status=available")
    boxes, every = desk.page.locator(".choose input[name]"), desk.page.locator("[data-all]")
    count = boxes.count()
    assert desk.page.evaluate(_LONG_TEXTS) == [144, 1]  # 9rem, and one line
    boxes.first.click()
    boxes.last.click(modifiers=["Shift"])
    expect(every).to_be_checked()
    expect(desk.page.locator("#several output")).to_have_text(f"{count} chosen")
    desk.page.locator("#several").get_by_role("button", name="Mark sold").click()
    desk.told(f"{count} animals are sold.")
    desk.page.route("**/console/undo", lambda route: route.abort())
    desk.press("Undo")
    # A button has no text to keep.
    expect(desk.page.get_by_role("alert")).to_have_text("The service could not be reached. Try again.")
    desk.page.unroute("**/console/undo")
    desk.complaints.clear()
    desk.press("Undo")
    desk.told(f"{count} animals are as before.")
    assert boxes.count() == count


def _category(desk: Desk) -> None:
    desk.go("Categories")
    desk.fill(id="1", name="Dogs").press("Name it")
    expect(desk.row("Dogs")).to_be_visible()
