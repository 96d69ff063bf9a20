"""A real Chromium for the tests of pages.

Without a Chromium these tests skip and say so; where CI is set they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser

from tests.support.browser import DESKTOP, WatchedPage, running_browser
from tests.support.server import Server


@pytest.fixture(scope="package")
def browser(server: Server) -> Iterator[Browser]:
    """One Chromium for all tests here; each page has a context, and so a storage, of its own."""
    with running_browser() as started:
        yield started


@pytest.fixture(scope="package")
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
