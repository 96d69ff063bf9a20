"""The pages in a real browser: with and without a script, wide and narrow, light and dark."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.site.browser.conftest import OpenPage
from tests.site.test_site import PAGES
from tests.support.browser import (
    DESKTOP,
    LOOKS,
    NARROW,
    PHONE,
    WatchedPage,
    fits,
    thin,
    unfold,
    violations,
    weigh,
)

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("browser")]

_PAPER: dict[Literal["light", "dark"], str] = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}
_GROUND = "getComputedStyle(document.body).backgroundColor"
_TEXT = """
() => [...document.querySelectorAll("main :is(h1, h2, h3, p, li, td, th, pre, dt, dd)")]
  .map((part) => part.textContent.replace(/\\s+/g, " ").trim())
"""


class TestEveryPage:
    """What holds for all of them."""

    @pytest.mark.parametrize("path", PAGES)
    def test_it_is_light_and_accessible_everywhere(self, reader: WatchedPage, path: str) -> None:
        """Few requests and kilobytes, headers included; a second view asks only whether the page changed.

        axe has no complaint of any severity, when all is unfolded; at 360 pixels nothing scrolls sideways.
        Nor is there an error in the console, a refusal by the policy, another host, or something missing. Of
        two pages one is met wide, one on a phone, and then what may differ in the other size and scheme.
        """
        page, address = reader.page, reader.base_url + path
        reader.complaints.clear()
        page.set_viewport_size(NARROW)
        first, second = weigh(page, address, first=True), weigh(page, address)
        assert first.size_bytes < (60_000 if path.endswith("reference") else 30_000)
        assert first.requests <= 6
        assert second.size_bytes < 1_000
        assert fits(page)
        unfold(page)
        assert fits(page)
        thin(page)
        sizes = (DESKTOP, PHONE) if PAGES.index(path) % 2 else (PHONE, DESKTOP)
        for (scheme, paper), size, rules in zip(_PAPER.items(), sizes, ((), LOOKS), strict=True):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            assert page.evaluate(_GROUND) == paper
            assert violations(page, rules) == []
        assert reader.faults() == []

    def test_the_page_of_an_error_too(self, open_page: OpenPage) -> None:
        """What is not there has a page that leads back."""
        page = open_page().open("/docs/nothing/here")
        assert violations(page) == []
        page.get_by_role("link", name="documentation").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Documentation")

    def test_the_watch_sees_what_it_is_for(self, open_page: OpenPage) -> None:
        """An inline script and an image from elsewhere, put into the page, are refused and noticed."""
        watched = open_page()
        page = watched.open("/docs")
        page.evaluate(
            """() => {
              const script = document.createElement("script");
              script.textContent = "window.ran = true";
              document.body.append(script);
              const image = document.createElement("img");
              image.src = "http://elsewhere.invalid/pixel.png";
              document.body.append(image);
            }"""
        )
        page.wait_for_function("window.refusedByPolicy.length >= 2")
        assert page.evaluate("window.ran") is None
        assert any(fault.startswith("script-src") for fault in watched.faults())
        assert any(fault.startswith("img-src") for fault in watched.faults())


class TestWithoutScript:
    """A script adds comfort, and no text."""

    @pytest.mark.parametrize("path", ["/", "/docs/guide", "/docs/reference"])
    def test_the_text_is_all_there(self, open_page: OpenPage, reader: WatchedPage, path: str) -> None:
        """Each paragraph, heading, row and sample that a reader with a script has."""
        plain = open_page(java_script_enabled=False).open(path).evaluate(_TEXT)
        assert len(plain) > 3
        assert set(reader.open(path).evaluate(_TEXT)) <= set(plain)

    def test_the_pages_can_be_walked_on_a_phone(self, open_page: OpenPage) -> None:
        """Through the folded menu, to a heading and on to the next page."""
        page = open_page(java_script_enabled=False, viewport=PHONE).open("/docs/quickstart")
        menu = page.get_by_role("navigation", name="All pages")
        expect(menu).to_be_hidden()
        page.get_by_text("Menu", exact=True).click()
        menu.get_by_role("link", name="Guide").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.url.endswith("/docs/guide")
        expect(menu).to_be_hidden()
        page.get_by_role("navigation", name="Previous and next page").get_by_role("link").last.click()
        assert page.url.endswith("/docs/clients")


class TestSearch:
    """The field in the bar of every page."""

    def test_without_a_script_it_leads_to_a_page(self, open_page: OpenPage) -> None:
        """The page has results, which lead to their sections."""
        page = open_page(java_script_enabled=False, viewport=PHONE).open("/docs/guide")
        page.get_by_role("searchbox").fill("key_banned")
        page.get_by_role("searchbox").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Search")
        page.locator(".found a").first.click()
        assert page.url.endswith("/docs/errors#key_banned")

    def test_results_come_while_it_is_typed(self, open_page: OpenPage) -> None:
        """Below the field, for the keyboard too, with the words of now; Escape takes them away."""
        watched = open_page()
        page = watched.open("/docs/quickstart")
        page.get_by_role("searchbox").press_sequentially("409 confl")
        expect(page.locator(".results .found a").first).to_have_attribute("href", re.compile("errors#409$"))
        thin(page)
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator(".results")).to_be_hidden()
        page.get_by_role("searchbox").fill("idempotency_key_in_use")
        expect(page.locator(".results").get_by_role("status")).to_contain_text("idempotency_key_in_use")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/docs/errors#idempotency_key_in_use")
        assert watched.faults() == []

    def test_the_page_of_results_follows_its_field(self, open_page: OpenPage) -> None:
        """The page of results shows what is found for its field in the same place, not in a second list."""
        page = open_page().open("/docs/search")
        page.get_by_role("searchbox").fill("zzz")
        expect(page.get_by_role("status")).to_contain_text("Nothing is found")
        expect(page.locator(".results")).to_have_count(0)


class TestWays:
    """The pages work by keyboard, with the script and on paper."""

    def test_the_keyboard_comes_to_the_content_at_once(self, open_page: OpenPage) -> None:
        """The first stop is a visible link past the navigation."""
        page = open_page().open("/docs/guide")
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()

    def test_a_session_is_copied_as_commands(self, open_page: OpenPage) -> None:
        """The button leaves out prompts and answers."""
        page = open_page(permissions=["clipboard-read", "clipboard-write"]).open("/docs/quickstart")
        block = page.locator(".copied", has=page.locator(".gp")).first
        block.hover()
        block.get_by_role("button", name="Copy").click()
        expect(block.get_by_role("button")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert "$ " not in copied
        assert copied

    def test_the_contents_show_where_the_reader_is(self, open_page: OpenPage) -> None:
        """The entry of the section that is being read."""
        page = open_page().open("/docs/guide")
        links = page.locator(".side .contents a")
        links.nth(4).click()
        expect(links.nth(4)).to_have_attribute("aria-current", "location")
        expect(page.locator(".side .contents a[aria-current]")).to_have_count(1)

    def test_paper_has_the_text_alone(self, open_page: OpenPage) -> None:
        """White, without navigation and forms, and with what a screen folds."""
        page = open_page("dark").open("/docs/reference")
        folded = page.locator("details.more p").first
        expect(folded).to_be_hidden()
        page.emulate_media(media="print")
        assert page.evaluate(_GROUND) == _PAPER["light"]
        for part in (".bar", ".side", ".menu", ".pager", ".try"):
            expect(page.locator(part).first).to_be_hidden()
        expect(folded).to_be_visible()
