"""Samples in a real browser: one choice of language for all, and the reader's own key in this tab alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from petstore.site import documents
from tests.site.browser.conftest import OpenPage
from tests.support.server import Server

_SAMPLES = """\
# Title

**curl**

```sh
curl one
```

```json
{}
```

**Python**

```python
two()
```

**Alone**

Text.
"""


def test_samples_in_a_row_are_tabs() -> None:
    """Each has its language and all its code; bold text without code is none of them."""
    body = documents.render(_SAMPLES, "./").body
    tabs, rest = body.split("</div>\n</div>\n")
    first, second = tabs.split('<div class="tab">')[1:]
    assert first.startswith('\n<p class="language"><strong>curl</strong></p>')
    assert first.count("<pre") == 2
    assert second.startswith('\n<p class="language"><strong>Python</strong></p>')
    assert rest.startswith("<p><strong>Alone</strong></p>")


@pytest.mark.browser
@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.xdist_group("browser")
class TestLanguages:
    """Tabs."""

    def test_one_choice_is_the_choice_everywhere(self, open_page: OpenPage) -> None:
        """A chosen language shows on this page and others, now and later, and nothing visible moves."""
        page = open_page().open("/docs/reference#placeOrder")
        chosen = page.locator("#placeOrder").get_by_role("tab", name="JavaScript")
        chosen.scroll_into_view_if_needed()
        before = chosen.bounding_box()
        chosen.click()
        after = chosen.bounding_box()
        assert before is not None
        assert after is not None
        assert abs(before["y"] - after["y"]) < 2
        expect(page.locator("#listPets").get_by_role("tabpanel")).to_contain_text("await fetch(")
        page.goto(page.url.replace("/docs/reference#placeOrder", "/docs/guide"))
        expect(page.get_by_role("tabpanel", name="JavaScript").first).to_be_visible()
        assert page.get_by_role("tabpanel", name="requests").count() == 0

    def test_a_place_without_the_language_shows_its_first(self, open_page: OpenPage) -> None:
        """No place is ever empty."""
        page = open_page().open("/docs/guide")
        page.get_by_role("tab", name="requests").first.click()
        places = page.locator(".tabs")
        shown = page.get_by_role("tabpanel")
        assert shown.count() == places.count() > page.get_by_role("tab", name="requests").count()

    def test_the_keyboard_goes_from_tab_to_tab(self, open_page: OpenPage) -> None:
        """The ARIA pattern: arrows in a circle, Home and End; one stop of Tab, then the code."""
        page = open_page().open("/docs/guide")
        tabs = page.get_by_role("tablist").first.get_by_role("tab")
        tabs.first.focus()
        for key, name in (
            ("ArrowRight", "Python"), ("End", "JavaScript"), ("ArrowRight", "curl"),
            ("ArrowLeft", "JavaScript"), ("Home", "curl"),
        ):  # fmt: skip
            page.keyboard.press(key)
            expect(tabs.and_(page.get_by_role("tab", name=name))).to_be_focused()
            expect(tabs.and_(page.locator("[aria-selected=true]"))).to_have_text(name)
        page.keyboard.press("Tab")
        expect(page.locator("pre:focus")).to_contain_text("curl -s")

    def test_without_a_script_all_are_there(self, open_page: OpenPage) -> None:
        """Below each other, each under its language."""
        page = open_page(java_script_enabled=False).open("/docs/reference")
        for language in ("curl", "Python", "requests", "JavaScript"):
            sample = page.locator("#listPets .tab").filter(has=page.get_by_text(language, exact=True))
            expect(sample.locator("pre")).to_be_visible()
        assert page.get_by_role("tab").count() == page.locator("main form:visible").count() == 0


# Forgotten on another page, then back to this one: this browser keeps no pages for that.
_COME_BACK = """
sessionStorage.clear();
dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
"""


def field(page: Page) -> Locator:
    return page.locator(".own-key").get_by_label("Your API key")


@pytest.mark.browser
@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.xdist_group("browser")
class TestOwnKey:
    """A key that the reader pastes."""

    def test_it_is_in_the_samples_and_in_this_tab_alone(self, open_page: OpenPage, server: Server) -> None:
        """The key is in this tab's samples and forms, also after a reload; in no other storage or request."""
        watched = open_page(permissions=["clipboard-read", "clipboard-write"])
        page = watched.open("/docs/guide")
        asked: list[str] = []
        page.on("request", lambda each: asked.append(f"{each.url} {each.all_headers()} {each.post_data}"))
        field(page).fill(f" {server.key}\n")
        sample = page.locator(".copied").filter(has_text="export PETSTORE_KEY").first
        sample.hover()
        sample.get_by_role("button", name="Copy").click()
        expect(sample.get_by_role("button")).to_have_text("Copied")
        base = f"export PETSTORE_URL={server.base_url}/v1"
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == f"{base}\nexport PETSTORE_KEY={server.key}"
        for path in ("/docs/quickstart", "/docs/reference"):
            watched.open(path)
            expect(page.locator("pre", has_text=f"PETSTORE_KEY={server.key}").first).to_be_visible()
        page.reload()
        assert page.locator("#createPet [data-key]").input_value().strip() == server.key
        assert page.evaluate("Object.values(localStorage).join() + document.cookie") == ""
        assert server.key not in page.url + "".join(asked)
        other = page.context.new_page()
        other.goto(page.url)
        expect(field(other)).to_have_value("")
        assert watched.faults() == []

    def test_a_button_forgets_it(self, open_page: OpenPage, server: Server) -> None:
        """Here, and on a page that the browser shows again as it was left."""
        page = open_page().open("/docs/reference")
        field(page).fill(server.key)
        page.locator(".own-key").get_by_role("button", name="Forget the key").click()
        assert page.evaluate("sessionStorage.length") == 0
        expect(page.locator("#createPet [data-key]")).to_have_value("")
        assert server.key not in page.content()
        field(page).fill(server.key)
        page.evaluate(_COME_BACK)
        expect(field(page)).to_have_value("")
        assert server.key not in page.content()

    def test_a_wrong_form_is_told_and_not_shown(self, open_page: OpenPage) -> None:
        """A sample that is pasted into a terminal has a key or the placeholder in it, nothing else."""
        page = open_page().open("/docs/quickstart")
        for wrong in ("pets_live_short", "pets_live_$(reboot)", "<b>pets_live_</b>"):
            field(page).fill(wrong)
            expect(field(page)).to_have_accessible_description(re.compile("This is no API key"))
            expect(page.get_by_role("status")).to_contain_text("This is no API key")
            shown = page.locator("pre", has_text="PETSTORE_KEY=pets_live_YourOwnKeyStandsHere")
            expect(shown).to_be_visible()
            field(page).fill("")
            expect(page.get_by_role("status")).to_be_empty()
