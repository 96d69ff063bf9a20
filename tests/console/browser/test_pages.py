"""What holds for every page of the console in a real browser, with a store that has something to show."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ViewportSize, expect

from petstore.core.clock import SystemClock
from petstore.storage.backend import backend_for
from tests.support.browser import (
    DESKTOP,
    ENLARGED,
    LOOKS,
    NARROW,
    NARROWEST,
    PHONE,
    WatchedPage,
    fits,
    thin,
    unfold,
    violations,
    weigh,
)
from tests.support.console_places import PLACES, WITHOUT_SESSION, People, add_people, places
from tests.support.failing_webhooks import add_webhook, let_fail
from tests.support.postgres import apart
from tests.support.server import Server, running_server
from tools.demo.making import make

pytestmark = [
    pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("console-browser"),
]  # fmt: skip

_DAYS = 3
_MAX_BYTES = 100_000
_A4: ViewportSize = {"width": 680, "height": 1_000}  # within its margins
_PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 23, 31)"}
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_PATHS = list(PLACES)
# Pico lets colours change slowly, unless a reader wants less motion.
_CONTEXT: dict[str, Any] = {"viewport": DESKTOP, "reduced_motion": "reduce"}


async def fill(url: str) -> People:
    """Some days of a shop, and people."""
    clock = SystemClock()
    await make({"PETSTORE_DATABASE_URL": url}, 1, _DAYS, clock.now_ms(), lambda: None)
    store = backend_for(url).open(clock)
    try:
        for key in (await store.keys.get(1), *(await store.keys.of_account("5"))[:1]):
            await let_fail(store, (await add_webhook(store, key.id)).id, clock.now_ms())
        return await add_people(store)
    finally:
        await store.close()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, People]]:
    """A server of a store with some days behind it."""
    folder = tmp_path_factory.mktemp("full")
    people: People = apart(lambda: asyncio.run(fill(f"sqlite:///{folder}/petstore.db")))
    with running_server(folder, console="on", access_log="off") as server:
        yield server, people


Open = Callable[..., WatchedPage]


def sign_in(context: BrowserContext, full: tuple[Server, People]) -> BrowserContext:
    """Sign the browser in as the operator."""
    server, people = full
    cookie = {"name": "petstore-session", "value": people.token, "url": server.base_url}
    context.add_cookies([cookie])  # type: ignore[list-item]
    return context


@pytest.fixture
def open_page(browser: Browser, full: tuple[Server, People]) -> Iterator[Open]:
    """Makes pages: of the operator, or of nobody."""
    with ExitStack() as stack:

        def make_page(*, signed_in: bool = True) -> WatchedPage:
            context = stack.enter_context(browser.new_context(**_CONTEXT))
            if signed_in:
                sign_in(context, full)
            return WatchedPage(context.new_page(), full[0].base_url)

        yield make_page


@pytest.fixture(scope="module")
def operators(browser: Browser, full: tuple[Server, People]) -> Iterator[WatchedPage]:
    """One page for all places of an operator: its process starts once, and knows axe from then on."""
    with browser.new_context(**_CONTEXT) as context:
        yield WatchedPage(sign_in(context, full).new_page(), full[0].base_url)


@pytest.mark.parametrize("path", PLACES)
def test_a_page_is_light_and_accessible_everywhere(
    request: pytest.FixtureRequest, open_page: Open, full: tuple[Server, People], path: str
) -> None:
    """axe has no complaint of any severity at a desk or on a phone, nor of what may differ in the other size
    and scheme, which change from place to place.

    A first view is less than 100 kB over the wire. At 360 pixels nothing scrolls sideways, with everything
    twice as large either. There is no error in the browser's console, no refusal by the policy, no other
    host, nothing missing.
    """
    for number, place in enumerate(places(PLACES[path], full[1]), _PATHS.index(path)):
        if path in WITHOUT_SESSION:
            watched = open_page(signed_in=False)
        else:
            watched = request.getfixturevalue("operators")
            watched.complaints.clear()
        page = watched.page
        page.set_viewport_size(NARROW)
        assert weigh(page, watched.base_url + place, first=True).size_bytes < _MAX_BYTES
        assert page.locator("h1").count() == 1
        unfold(page)
        for size in (NARROW, ENLARGED):
            page.set_viewport_size(size)
            assert fits(page)
        thin(page)
        schemes = _SCHEMES if number % 2 else _SCHEMES[::-1]
        sizes = (DESKTOP, PHONE) if number // 2 % 2 else (PHONE, DESKTOP)
        for scheme, size, rules in zip(schemes, sizes, ((), LOOKS), strict=True):
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            assert ground == _PAPER[scheme]
            assert violations(page, rules) == []
        assert watched.faults() == []


@pytest.mark.parametrize("path", ["pets", "orders?state=all", "accounts", "journal"])
def test_a_list_on_a_phone_on_paper_and_in_forced_colours(open_page: Open, path: str) -> None:
    """A list on a phone has its first row in the upper half, filters that unfold, and no complaint of axe; a
    desk has the filters at once. Paper has no menu, no form and nothing to choose, and nothing is cut. Focus
    is an outline, which forced colours keep."""
    watched = open_page()
    page = watched.page
    page.set_viewport_size(PHONE)
    watched.open(f"/console/{path}")
    first, filters = page.locator("main tbody tr").first, page.locator("details.more [name]").first
    assert first.evaluate("row => row.getBoundingClientRect().top") < PHONE["height"] / 2
    expect(filters).to_be_hidden()
    page.get_by_text("Filters", exact=True).click()
    expect(filters).to_be_visible()
    thin(page)
    assert violations(page) == []
    page.get_by_text("Filters", exact=True).click()
    page.set_viewport_size(DESKTOP)
    expect(filters).to_be_visible()
    page.emulate_media(forced_colors="active")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.emulate_media(media="print", forced_colors="none")
    page.set_viewport_size(_A4)
    for gone in ("nav.side", "form.filters", ".actions", "th.links", "td.links", ".choose"):
        expect(page.locator(gone).first).to_be_hidden()
    assert fits(page)


def test_what_lies_over_a_phones_page_covers_nothing_that_is_wanted(open_page: Open) -> None:
    """A row's buttons stand within a screen of 320 pixels, whatever scrolls. The end of a list with chosen
    rows is above their actions, and so is what the keyboard goes to. The menu closes with Escape, and when
    the focus goes elsewhere. A long name of the person is cut off before it lies over the store's."""
    watched = open_page()
    page = watched.page
    page.set_viewport_size(PHONE)
    watched.open("/console/orders?state=all")
    page.locator(".bar .name bdi").evaluate("name => { name.textContent = 'Maximiliane-Alexandra'; }")
    right, left = (
        page.locator(each).evaluate(f"each => each.getBoundingClientRect().{edge}")
        for each, edge in ((".home", "right"), (".bar .name", "left"))
    )
    assert right < left
    page.set_viewport_size(ENLARGED)
    assert fits(page)
    page.set_viewport_size(NARROWEST)
    table = page.get_by_role("region", name="Orders")
    assert table.evaluate("table => table.scrollWidth > table.clientWidth")
    button = table.get_by_role("button").first
    assert button.evaluate("button => button.getBoundingClientRect().right <= innerWidth")
    page.locator(".choose [name]").first.check()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    bottom, top = (
        page.locator(each).evaluate(f"each => each.getBoundingClientRect().{edge}")
        for each, edge in ((".pager", "bottom"), ("#several", "top"))
    )
    assert bottom <= top
    page.evaluate("scrollTo(0, 0)")
    page.locator(".choose [name]").first.focus()
    focused = page.locator("main :focus")
    while focused.count():
        assert focused.evaluate("each => each.getBoundingClientRect().bottom") <= top
        page.keyboard.press("Tab")
    menu, summary = page.locator(".menu"), page.locator(".menu summary")
    for leave in ("Escape", "Shift+Tab"):
        summary.focus()
        page.keyboard.press("Enter")
        expect(menu).to_have_attribute("open", "")
        page.keyboard.press(leave)
        expect(menu).not_to_have_attribute("open", "")
    assert watched.faults() == []


def test_a_new_key_is_copied(open_page: Open) -> None:
    """A button puts it into the clipboard."""
    watched = open_page()
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.open("/console/accounts/5/keys/new")
    page.locator("main [name=label]").fill("tills")
    page.get_by_role("button", name="Issue the key").click()
    key = page.locator("#key-text").inner_text()
    page.get_by_role("button", name="Copy").click()
    page.wait_for_function("key => navigator.clipboard.readText().then((text) => text === key)", arg=key)
    assert watched.faults() == []


def test_the_next_view_is_the_page_alone(open_page: Open) -> None:
    """Style sheets and scripts stay in the browser; it asks whether the icon has changed.

    The overview asks for its numbers besides.
    """
    watched = open_page()
    weigh(watched.page, watched.base_url + "/console")
    assert weigh(watched.page, watched.base_url + "/console/orders").requests <= 2


def test_a_list_that_follows_what_is_typed(open_page: Open) -> None:
    """It is busy while it waits. It says when nothing answers, asks again, and ends with its session."""
    watched = open_page()
    page, asked = watched.page, "**/console/pets?q=*"
    page.clock.install()
    page.goto(watched.base_url + "/console/pets")
    page.route(asked, lambda route: None)
    page.fill("main [name=q]", "b")
    page.clock.run_for(300)
    expect(page.locator("#rows")).to_have_attribute("aria-busy", "true")
    page.unroute(asked)
    page.route(asked, lambda route: route.abort())
    page.fill("main [name=q]", "be")
    page.clock.run_for(300)
    expect(page.locator("#unanswered")).to_be_visible()
    expect(page.locator("[aria-busy]")).to_have_count(0)
    page.unroute(asked)
    page.clock.run_for(5_300)
    expect(page.locator("#unanswered")).to_be_hidden()
    expect(page.locator("#rows")).to_contain_text("Bella")
    page.context.clear_cookies()
    page.fill("main [name=q]", "bel")
    page.clock.run_for(300)
    page.wait_for_url("**/console/sign-in?next=pets%3Fq%3Dbel*")


def test_the_overview_refreshes_itself(open_page: Open) -> None:
    """The overview does not refresh while somebody is at a link in it, but its ages go on. An open table of a
    chart stays open. It says when nothing answers, and ends with its session."""
    watched = open_page()
    page, asked = watched.page, list[str]()
    page.on("request", lambda request: asked.append(request.headers.get("x-unattended", "")))
    page.clock.install()
    page.goto(watched.base_url + "/console")
    page.evaluate("document.querySelector('.charts details').open = true")
    asked.clear()
    with page.expect_response("**/console"):
        page.clock.run_for(11_000)
    assert set(asked) == {"1"}
    expect(page.locator(".charts details[open]")).to_have_count(1)
    page.locator("#now a").first.focus()
    asked.clear()
    page.clock.run_for(60_000)
    assert asked == []
    expect(page.locator("time[data-ago]").last).to_have_text(re.compile("minutes? ago$"))
    page.evaluate("document.activeElement.blur()")
    page.route("**/console", lambda route: route.abort())
    page.clock.run_for(11_000)
    expect(page.locator("#unanswered")).to_be_visible()
    page.unroute("**/console")
    page.clock.run_for(11_000)
    expect(page.locator("#unanswered")).to_be_hidden()
    page.context.clear_cookies()
    page.clock.run_for(11_000)
    page.wait_for_url("**/console/sign-in*")
