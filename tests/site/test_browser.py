"""The pages in a real browser, under their Content-Security-Policy, in both colour schemes and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.site.conftest import WatchedPage
from tests.support.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("browser")]

OpenPage = Callable[..., WatchedPage]
PAGES = ("/", "/docs", "/docs/deprecation")

# How many texts there are, and those whose contrast with what is behind them is below 4.5 (WCAG 2, 1.4.3).
_PALE_TEXTS = """
() => {
  const channels = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const luminance = ([red, green, blue]) => {
    const linear = (value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  };
  const contrast = (element) => {
    let behind = element;
    while (channels(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const colours = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
    const both = colours.map(channels).map(luminance).sort((a, b) => b - a);
    return (both[0] + 0.05) / (both[1] + 0.05);
  };
  const texts = [...document.querySelectorAll("h1, h2, p, li, td, th, code, a, strong")];
  return [texts.length, texts.filter((text) => contrast(text) < 4.5).map((text) => text.innerText)];
}
"""


def operations(server: Server) -> list[dict[str, Any]]:
    """Every operation of the document that the server shows."""
    document = server.request("GET", "/openapi.json", key="").json()
    return [
        operation
        for item in document["paths"].values()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]


def authorise(page: Page, key: str) -> None:
    """Hand a key to Swagger UI as a reader does."""
    page.locator(".btn.authorize").first.click()
    dialog = page.locator(".dialog-ux")
    dialog.locator("input").fill(key)
    dialog.get_by_role("button", name="Apply credentials").click()
    dialog.get_by_role("button", name="Close", exact=True).click()


def try_out(page: Page, operation_id: str, body: str | None = None) -> str:
    """Open an operation, execute it, and give the live status that the page then shows."""
    block = page.locator(f"#operations-pets-{operation_id}")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    if body is not None:
        block.locator("textarea.body-param__text").fill(body)
    block.get_by_role("button", name="Execute").click()
    status = block.locator(".live-responses-table .response-col_status").last
    status.wait_for()
    return status.inner_text().split()[0]


class TestReference:
    """`/docs`, the interactive reference."""

    def test_every_operation_is_shown_and_opens_without_a_fault(
        self, open_page: OpenPage, server: Server
    ) -> None:
        """Each operation of the document unfolds; nothing complains, is refused or asks another host."""
        watched = open_page()
        page = watched.open("/docs")
        expect(page.locator(".opblock")).to_have_count(len(operations(server)))
        for operation in operations(server):
            block = page.locator(f"#operations-{operation['tags'][0]}-{operation['operationId']}")
            assert ("opblock-deprecated" in (block.get_attribute("class") or "")) == operation.get(
                "deprecated", False
            )
            block.locator(".opblock-summary-control").click()
            for status in operation["responses"]:
                expect(block.locator(f".responses-inner tr.response[data-code='{status}']")).to_be_visible()
        page.locator(".models-control").click()
        expect(page.locator("section.models")).to_contain_text("NewPet")
        assert watched.faults() == []

    def test_dark_readers_get_a_dark_page(self, open_page: OpenPage) -> None:
        """The vendored page follows the reader's scheme, also when it changes while the page is open."""
        page = open_page("dark").open("/docs")
        expect(page.locator("html.dark-mode")).to_have_count(1)
        page.emulate_media(color_scheme="light")
        expect(page.locator("html.dark-mode")).to_have_count(0)

    def test_a_key_and_try_it_out_list_the_animals(self, open_page: OpenPage, server: Server) -> None:
        """With a key, listPets answers 200 in the page, with the animal and the limit headers."""
        watched = open_page()
        page = watched.open("/docs")
        authorise(page, server.key)
        assert try_out(page, "listPets") == "200"
        answer = page.locator("#operations-pets-listPets .live-responses-table")
        expect(answer).to_contain_text('"name": "Rex"')
        expect(answer).to_contain_text("x-ratelimit-remaining")
        assert watched.faults() == []

    def test_an_animal_can_be_added_from_the_page(self, open_page: OpenPage, server: Server) -> None:
        """createPet answers 201 in the page, and the animal is there."""
        watched = open_page()
        page = watched.open("/docs")
        authorise(page, server.key)
        assert try_out(page, "createPet", '{"name": "Mia", "categoryId": 2}') == "201"
        assert "Mia" in [pet["name"] for pet in server.request("GET", "/v1/pets?limit=100").json()]
        assert watched.faults() == []

    def test_without_a_key_the_answer_is_shown_too(self, open_page: OpenPage) -> None:
        """A reader who forgot the key sees the 401 and its message."""
        page = open_page().open("/docs")
        assert try_out(page, "listPets") == "401"
        expect(page.locator("#operations-pets-listPets .live-responses-table")).to_contain_text(
            "Authorization: Bearer"
        )


class TestEveryPage:
    """What holds for all of them."""

    @pytest.mark.parametrize("path", PAGES)
    def test_no_page_has_a_fault(self, open_page: OpenPage, path: str) -> None:
        """No error in the console, no refusal by the policy, no request to another host, no 404.

        On a phone, 390 pixels wide, it does not scroll sideways.
        """
        watched = open_page()
        page = watched.open(path)
        expect(page.locator("h1, h2.title").first).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert watched.faults() == []

    @pytest.mark.parametrize("path", PAGES)
    def test_the_watch_sees_what_it_is_for(self, open_page: OpenPage, path: str) -> None:
        """An inline script and an image from elsewhere, put into the page, are refused and noticed."""
        watched = open_page()
        page = watched.open(path)
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

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("path", ["/", "/docs/deprecation"])
    def test_text_can_be_read_in_both_schemes(self, open_page: OpenPage, path: str, scheme: str) -> None:
        """Text has a contrast of 4.5 at least, on a paper that is dark for those who prefer it."""
        page = open_page(scheme).open(path)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 25, 31)"}[scheme]
        count, pale = page.evaluate(_PALE_TEXTS)
        assert count > 10
        assert pale == []

    def test_every_link_leads_somewhere(self, open_page: OpenPage, server: Server) -> None:
        """Each link of a page of ours is answered with 200."""
        for path in PAGES:
            page = open_page().open(path)
            links = page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)")
            ours = {link.split("#")[0] for link in links if link.startswith(server.base_url)}
            assert ours
            for link in ours:
                answer = server.request("GET", link.removeprefix(server.base_url), key="")
                assert answer.status == 200, link
