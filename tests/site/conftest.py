"""A real Chromium and a real server for the tests of pages.

Without a Chromium these tests skip and say so; where CI is set they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser

from tests.support.browser import DESKTOP, WatchedPage, running_browser
from tests.support.server import Server, issue_key, running_server


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    """One Chromium for all tests of a module; each page has a context, and so a storage, of its own."""
    with running_browser() as started:
        yield started


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with one animal; its key has room for everything that the tests ask."""
    folder = tmp_path_factory.mktemp("site")
    key = issue_key(folder / "petstore.db")
    with running_server(folder, access_log="off") as started:
        started.key = key
        assert started.post({"name": "Rex", "categoryId": 1}).status == 201
        yield started


@pytest.fixture(scope="module")
def reader(browser: Browser, server: Server) -> Iterator[WatchedPage]:
    """One page for all that is only read: its process starts once, and knows axe from then on."""
    with browser.new_context(viewport=DESKTOP) as context:
        yield WatchedPage(context.new_page(), server.base_url)


OpenPage = Callable[..., WatchedPage]


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator[OpenPage]:
    """Makes pages: `open_page("dark")`, and with other options of a context, `java_script_enabled=False`."""
    with ExitStack() as stack:

        def make(scheme: Literal["light", "dark"] = "light", **options: Any) -> WatchedPage:
            options = {"viewport": DESKTOP, "color_scheme": scheme, **options}
            context = stack.enter_context(browser.new_context(**options))
            return WatchedPage(context.new_page(), server.base_url)

        yield make
