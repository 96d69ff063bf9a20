"""The pages in a real browser, under their Content-Security-Policy, in both colour schemes and on a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.site.conftest import WatchedPage
from tests.support.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("browser")]

OpenPage = Callable[..., WatchedPage]
PAGES = (
    "/", "/docs", "/docs/quickstart", "/docs/guide", "/docs/reference", "/docs/errors", "/docs/changelog",
    "/docs/deprecation",
)  # fmt: skip

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


class TestEveryPage:
    """What holds for all of them."""

    @pytest.mark.parametrize("path", PAGES)
    def test_no_page_has_a_fault(self, open_page: OpenPage, path: str) -> None:
        """No error in the console, no refusal by the policy, no request to another host, no 404.

        On a phone, 390 pixels wide, it does not scroll sideways.
        """
        watched = open_page()
        page = watched.open(path)
        expect(page.locator("h1")).to_be_visible()
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
    @pytest.mark.parametrize("path", PAGES)
    def test_text_can_be_read_in_both_schemes(self, open_page: OpenPage, path: str, scheme: str) -> None:
        """Text has a contrast of 4.5 at least, on a paper that is dark for those who prefer it."""
        page = open_page(scheme).open(path)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}[scheme]
        count, pale = page.evaluate(_PALE_TEXTS)
        assert count > 5
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
