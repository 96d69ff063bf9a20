"""A contact's page over the wire: in one click as a provider of mail asks, and in a real browser."""

from __future__ import annotations

import http.client

import pytest
from playwright.sync_api import expect

from petstore.core.mails import SWITCHES
from petstore.storage.store import Store
from tests.site.browser.conftest import OpenPage
from tests.support.backends import in_store
from tests.support.browser import LOOKS, NARROW, PHONE, fits, violations
from tests.support.journal import ACTOR
from tests.support.server import Server


@pytest.fixture(scope="session")
def token(server: Server) -> str:
    """The token of a contact of the running server."""

    async def add(store: Store) -> str:
        return (await store.contacts.add("account", "large", "anna@example.com", ACTOR)).token

    return in_store(f"sqlite:///{server.database}", add)


@pytest.mark.e2e
@pytest.mark.xdist_group("browser")
class TestOverTheWire:
    """A provider of mail asks with the address of List-Unsubscribe, and with nothing from the page."""

    def test_one_click_is_200_at_once(self, server: Server, token: str) -> None:
        """The connection takes the next request, or says that it ends."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        try:
            path, body = f"{SWITCHES}/{token}", iter([b"List-Unsubscribe=", b"One-Click"])
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", f"{path}?off=limit.reached", body, form)
            answer = connection.getresponse()
            assert answer.status == 200
            assert b"You get no more mail of this" in answer.read()
            assert answer.getheader("set-cookie") is answer.getheader("location") is None
            connection.request("POST", f"{path}?on=limit.reached")  # a new one where that ended
            assert connection.getresponse().status == 200
        finally:
            connection.close()


@pytest.mark.browser
@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.xdist_group("browser")
class TestInABrowser:
    """A real Chromium asks."""

    @pytest.mark.parametrize("java_script_enabled", [True, False])
    def test_it_switches_off_and_on(self, token: str, open_page: OpenPage, java_script_enabled: bool) -> None:
        """A reader on a phone, with scripts or not, uses the large button, then the one in the list."""
        watched = open_page(java_script_enabled=java_script_enabled, viewport=PHONE)
        page = watched.open(f"{SWITCHES}/{token}?off=key.expiring")
        asked = page.get_by_role("button", name="Switch off").first
        expect(asked).to_have_accessible_description("A key expires within 14 days, and again within 3.")
        asked.click()
        expect(page.get_by_role("status")).to_contain_text("You get no more mail of this: A key expires")
        row = page.get_by_role("listitem").filter(has_text="A key expires")
        expect(row).to_contain_text("Off")
        row.get_by_role("button", name="Switch on").click()
        expect(page.get_by_role("status")).to_contain_text("You get mail of this again: A key expires")
        expect(row.get_by_role("button", name="Switch off")).to_be_visible()
        assert watched.complaints == []

    def test_it_is_accessible_everywhere(self, token: str, open_page: OpenPage) -> None:
        """axe has no complaint in light and dark; nothing scrolls sideways, and nothing breaks the policy."""
        watched = open_page()
        page = watched.open(f"{SWITCHES}/{token}?off=key.banned")
        assert violations(page) == []
        page.set_viewport_size(NARROW)
        assert fits(page)
        page.emulate_media(color_scheme="dark")
        assert violations(page, LOOKS) == []
        page.get_by_role("button", name="Switch off").nth(1).click()
        expect(page.get_by_role("status")).to_be_visible()
        assert violations(page) == []
        assert watched.faults() == []
