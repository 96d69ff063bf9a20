"""A real Chromium and a real server for the tests of pages.

Without a Chromium these tests skip and say so; where CI is set they fail.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.machine import absent
from tests.support.server import Server, issue_key, running_server

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Runs before a page's own scripts: remembers what the Content-Security-Policy refused.
_WATCH_POLICY = """
window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.refusedByPolicy.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found or absent(f"browser ({', '.join(_NAMES)})")


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    """One Chromium for all tests of a module; each page has a context, and so a storage, of its own.

    It is started after the server: from then on this thread has an event loop, and `asyncio.run` refuses.
    """
    program = _chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with one animal; its key has room for everything that the tests ask."""
    folder = tmp_path_factory.mktemp("site")
    key = issue_key(folder / "petstore.db")
    with running_server(folder, access_log="off") as started:
        started.key = key
        assert started.post({"name": "Rex", "categoryId": 1}).status == 201
        yield started


class WatchedPage:
    """A page, and everything that it must not do: complain, meet its policy, ask another host."""

    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url
        self.complaints: list[str] = []
        page.add_init_script(_WATCH_POLICY)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        page.on("request", self._asked)
        page.on("response", self._answered)

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(f"console: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.base_url + "/", "data:")):
            self.complaints.append(f"other host: {request.url}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400 and "/v1/" not in response.url:
            self.complaints.append(f"{response.status}: {response.url}")

    def open(self, path: str) -> Page:
        """Go there and wait until everything of the page is loaded."""
        self.page.goto(self.base_url + path, wait_until="load")
        return self.page

    def faults(self) -> list[str]:
        """Everything that went wrong on this page so far."""
        return self.complaints + list(self.page.evaluate("window.refusedByPolicy"))


OpenPage = Callable[..., WatchedPage]


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator[OpenPage]:
    """Makes pages: `open_page("dark")`, and with other options of a context, `java_script_enabled=False`."""
    opened: list[WatchedPage] = []

    def make(scheme: Literal["light", "dark"] = "light", **options: Any) -> WatchedPage:
        options = {"viewport": {"width": 1_360, "height": 900}, **options}
        context = browser.new_context(color_scheme=scheme, **options)
        watched = WatchedPage(context.new_page(), server.base_url)
        opened.append(watched)
        return watched

    yield make
    for watched in opened:
        watched.page.context.close()
