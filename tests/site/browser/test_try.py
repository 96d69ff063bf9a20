"""The forms of the reference in a real browser: they send what they show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import WatchedPage
from tests.support.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture
def reference(reader: WatchedPage) -> Iterator[WatchedPage]:
    """The page, which is the largest, loaded anew; no key is left for the next test."""
    reader.complaints.clear()
    reader.open("/docs/reference")
    yield reader
    reader.page.unroute_all()
    reader.page.evaluate("sessionStorage.clear()")


def form(page: Page, operation: str, key: str = "") -> Locator:
    """The form of an operation, unfolded, with a key in it."""
    found = page.locator(f"#{operation} form.try")
    if found.locator("details").first.get_attribute("open") is None:
        found.locator("summary").first.click()
    if key:
        found.get_by_label("API key").fill(key)
    return found


def send(found: Locator) -> Locator:
    """The answer to a form, after a change was agreed to."""
    found.get_by_role("button", name="Send").click()
    dialog = found.page.get_by_role("dialog")
    if found.get_attribute("data-method") != "GET":
        dialog.get_by_role("button", name="Send").click()
    outcome = found.locator(".outcome")
    expect(outcome).to_be_visible()
    return found.locator(".result")


def sent_by(page: Page) -> list[str]:
    """The addresses that scripts of the page ask from now on; its icon may be loaded at any time."""
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if request.resource_type == "fetch" else None
    )
    return asked


def test_an_animal_is_added_and_listed(reference: WatchedPage, server: Server) -> None:
    """The examples alone do it: 201 with the limits, then 200 with the animal; neither meets the policy."""
    page = reference.page
    created = send(form(page, "createPet", server.key))
    expect(created.locator(".outcome")).to_contain_text("201 Created in")
    expect(created.locator("dt").filter(has_text=re.compile("^x-ratelimit-remaining$"))).to_be_visible()
    new = json.loads(created.locator("pre code").inner_text())
    listed = form(page, "listPets")
    expect(listed.get_by_label("API key")).to_have_value(server.key)
    listed.locator("[name=id]").fill(f"{new['id']}, 999999")
    answer = send(listed)
    assert json.loads(answer.locator("pre code").inner_text()) == [new]
    assert reference.faults() == []


def test_a_change_is_asked_about_first(reference: WatchedPage, server: Server) -> None:
    """The page stands in the real service: `Cancel` sends nothing."""
    page = reference.page
    asked = sent_by(page)
    deletion = form(page, "deletePet", server.key)
    deletion.get_by_label("petId").fill("1")
    deletion.get_by_role("button", name="Send").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("DELETE /v1/pets/1 changes the store")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert asked == []
    assert server.request("GET", "/v1/pets?id=1").json() != []


def test_an_error_leads_to_its_advice(reference: WatchedPage) -> None:
    """A request without a key gets 401, and a link to the advice for its code."""
    answer = send(form(reference.page, "listPets"))
    expect(answer.locator(".outcome")).to_contain_text("401 Unauthorized")
    expect(answer.get_by_role("link", name="unauthorized")).to_have_attribute("href", "errors#unauthorized")


def test_without_an_answer_the_page_says_what_is_known(reference: WatchedPage, server: Server) -> None:
    """A connection that breaks: for a change, that its outcome is unknown."""
    page = reference.page
    page.route("**/v1/**", lambda route: route.abort())
    reading = send(form(page, "listPets", server.key))
    expect(reading).to_have_text("No answer: the service can't be reached.")
    changing = send(form(page, "createPet"))
    expect(changing).to_contain_text("Whether the change was made is unknown.")


def test_what_an_animal_is_called_is_text(reference: WatchedPage, server: Server) -> None:
    """Markup in a name is shown as it is, and large integers keep their digits."""
    name = "<img src=x onerror=document.title='taken'>"
    new = server.post({"name": name, "categoryId": 9_007_199_254_740_993}).json()
    page = reference.page
    reading = form(page, "getPet", server.key)
    reading.get_by_label("petId").fill(str(new["id"]))
    answer = send(reading)
    expect(answer.locator("pre")).to_contain_text(name)
    expect(answer.locator("pre")).to_contain_text("9007199254740993")
    assert page.locator(".result img").count() == 0
    assert page.title() != "taken"
    assert reference.faults() == []


def test_a_form_asks_its_own_interface_only(reference: WatchedPage, server: Server) -> None:
    """No value of a path leads elsewhere: it is encoded, or refused before anything is sent."""
    page = reference.page
    asked = sent_by(page)
    reading = form(page, "getPet", server.key)
    for path in ("..", "../../docs", "//elsewhere.invalid/", "."):
        reading.get_by_label("petId").fill(path)
        answer = send(reading)
        expect(answer.locator(".outcome")).to_have_text(re.compile("not a value for a path|^404"))
        reading.locator(".result").evaluate("result => result.replaceChildren()")
    assert len(asked) == 2
    assert all(url.startswith(f"{server.base_url}/v1/pets/") for url in asked)
