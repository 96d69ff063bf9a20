"""A person's hand at a real browser: clicks and keys, counted, and the pages that were loaded."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

# A page that comes later than this is not an answer.
_WAIT_MS = 10_000
_FOCUSED = "field => field === document.activeElement"


class Hand:
    """Real clicks and keys on a page, counted since `begin`.

    What it looks for and does not find raises Playwright's TimeoutError.

    A pasted text is one key. A choice in a list of a form is two clicks: one opens it, one chooses.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(_WAIT_MS)
        page.on("domcontentloaded", lambda _: self._loaded())
        self.begin()

    def begin(self) -> None:
        """Count anew."""
        self.clicks = self.keys = self.loads = 0

    def _loaded(self) -> None:
        self.loads += 1

    def click(self, target: Locator) -> None:
        """Click where the page stays."""
        target.click()
        self.clicks += 1

    def go(self, target: Locator) -> None:
        """A click that leads to a page."""
        with self.page.expect_event("domcontentloaded"):
            self.click(target)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.keys += 1

    def enter(self) -> None:
        """Enter, which leads to a page."""
        with self.page.expect_event("domcontentloaded"):
            self.press("Enter")

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.keys += len(text)

    def paste(self, text: str) -> None:
        self.page.keyboard.insert_text(text)
        self.keys += 1

    def write(self, field: Locator, text: str) -> None:
        """Write into a field, in place of what it has; a click first unless the focus is there."""
        if not field.evaluate(_FOCUSED):
            self.click(field)
        if field.input_value():
            self.press("Control+a")
        self.type(text)

    def choose(self, field: Locator, value: str) -> None:
        """Choose in a list; a browser without windows draws none to click in."""
        field.select_option(value)
        self.clicks += 2
