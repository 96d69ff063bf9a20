"""A person at a browser, and the shop whose console it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import cycle
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.support.browser import WatchedPage
from tests.support.server import Response, Server
from tools.servers.petstore import run

PASSWORD = "four pets and a fish"
_LINK = re.compile(r"http://\S+/console/\S+")


class Servers:
    """The servers of one store; `key` is that of its first account."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.key = next(server.key for server in servers if server.key)

    def link_for(self, name: str, role: str) -> str:
        """Add a person beside the servers, as an operator does; the one-time link, on the first server."""
        done = run("people", "add", name, "--role", role, settings=self.servers[0].settings)
        assert done.returncode == 0, done.stderr
        found = _LINK.search(done.stdout)
        assert found is not None
        parts = urlsplit(found[0])
        return f"{self.servers[0].base_url}{parts.path}" + (f"?{parts.query}" if parts.query else "")

    def ask(self, key: str, target: str = "/v1/pets?limit=1") -> Response:
        """A customer's request, to the last server."""
        return self.servers[-1].request("GET", target, key=key)


class Desk(WatchedPage):
    """Each `step` goes on at the next server, as behind a load balancer that remembers nobody.

    Cookies belong to a host, whatever its port.
    """

    def __init__(self, page: Page, shop: Servers) -> None:
        bases = [server.base_url for server in shop.servers]
        super().__init__(page, *bases)
        self.shop = shop
        self._bases = cycle(bases)
        next(self._bases)

    def is_expected(self, status: int, url: str) -> bool:
        """No status is expected, since nobody here asks the interface."""
        return False

    def arrive(self, name: str, role: str) -> None:
        """Use a one-time link, set a password, sign out, and sign in with it."""
        self.page.goto(self.shop.link_for(name, role))
        self.fill(password=PASSWORD, again=PASSWORD).press("Set the password and sign in")
        self.see("Overview")
        self.leave()
        self.fill(name=name, password=PASSWORD).press("Sign in")
        self.see("Overview")

    def leave(self) -> None:
        """Sign out."""
        self.step()
        self.page.get_by_role("button", name="Sign out", exact=True).click()
        self.see("Sign in")

    def step(self) -> Page:
        """Load the current page from the next server."""
        base = next(self._bases)
        if base != self.base_url:
            parts = urlsplit(self.page.url)
            self.base_url = base
            self.page.goto(f"{base}{parts.path}" + (f"?{parts.query}" if parts.query else ""))
        return self.page

    def go(self, name: str) -> Page:
        """Use the menu at the side, on the next server."""
        self.step()
        self.page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name=name).click()
        return self.page

    def see(self, title: str | re.Pattern[str]) -> None:
        """The heading of the page."""
        expect(self.page.get_by_role("heading", level=1)).to_have_text(title)

    def told(self, text: str) -> None:
        """What the page says of the last action."""
        expect(self.page.locator(".good")).to_contain_text(text)

    def fill(self, **fields: str) -> Desk:
        """Fields by their names: a choice is chosen by its value."""
        for name, value in fields.items():
            field = self.page.locator(f"main [name='{name}']")
            if field.evaluate("field => field.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)
        return self

    def press(self, label: str) -> Page:
        """A button of the page, with its scripts, until its form is answered."""
        self.page.wait_for_load_state()  # a text is there before the scripts are
        self.page.locator("main").get_by_role("button", name=label, exact=True).click()
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)
        return self.page

    def follow(self, label: str) -> Page:
        """A link of the page; some look like buttons."""
        self.page.locator("main a").filter(has_text=re.compile(rf"^\s*{re.escape(label)}\s*$")).click()
        return self.page

    def wait_for(self, text: str) -> None:
        """Wait until the page, which asks anew by itself, has this text."""
        expect(self.page.locator("main")).to_contain_text(text)

    def row(self, text: str) -> Locator:
        """The row of a table that has this text."""
        return self.page.locator("main tbody tr", has_text=text)
