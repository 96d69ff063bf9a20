"""What changed, for callers and for operators: one file, two pages, and a feed of the interface's changes."""

from __future__ import annotations

import re
from datetime import datetime
from xml.etree import ElementTree as ET

import pytest

from petstore.site.changelog import part, releases
from petstore.site.tree import content
from tests.docs.documents import ROOT, text_of
from tests.support.service import Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = text_of(ROOT / "CHANGELOG.md")
_KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_ITEM = re.compile(r"^\* (?:.+\n?)(?:  .+\n?)*", re.M)
_ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def shop(lasting_shop: Shop) -> Shop:
    """Pages are the same for all tests: one service renders them."""
    return lasting_shop


async def test_each_change_is_on_one_page() -> None:
    """Each change in the changelog is on one page: that for callers or that for operators."""
    parts = [_ITEM.findall(part(TEXT, is_interface=is_interface)) for is_interface in (True, False)]
    assert all(parts)
    assert sorted([*parts[0], *parts[1]]) == sorted(_ITEM.findall(TEXT))


async def test_a_change_is_named_once() -> None:
    """No release names a change twice: branches that are merged line by line double what both have."""
    for release in re.split("^## ", TEXT, flags=re.M):
        names = re.findall(r"^\* \*\*([^*]+)\*\*", release, re.M)
        assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]


async def test_a_section_says_for_whom_it_is() -> None:
    """A misspelt `Interface: added` would be for operators."""
    allowed = {*_KINDS, *(f"Interface: {kind.lower()}" for kind in _KINDS), "Before you upgrade"}
    assert set(re.findall("^### (.+)$", TEXT, re.M)) <= allowed


async def test_the_pages_are_the_two_parts(shop: Shop) -> None:
    """Each leads to the other."""
    for path, is_interface, other in (
        ("/docs/changelog", True, "changelog-operators"), ("/docs/changelog-operators", False, "changelog"),
    ):  # fmt: skip
        page = (await shop.call("GET", path)).body.decode()
        shown = " ".join(content(page).text().split())
        assert f'href="{other}"' in page
        for item in _ITEM.findall(part(TEXT, is_interface=is_interface)):
            (first,) = re.findall(r"[\w ,]{12,}", item)[:1] or [""]
            assert " ".join(first.split()) in shown


def _texts(element: ET.Element, name: str) -> list[str]:
    return [found.text or "" for found in element.findall(f"{_ATOM}{name}")]


class TestFeed:
    """What RFC 4287 wants (4.1.1, 4.1.2), and a reader needs."""

    @staticmethod
    async def read(shop: Shop) -> ET.Element:
        answer = await shop.call("GET", "/docs/changelog.atom", [("host", "petstore.example")])
        assert answer.headers["content-type"] == "application/atom+xml"
        return ET.fromstring(answer.body)

    async def test_it_has_what_a_feed_must_have(self, shop: Shop) -> None:
        """One id, title and moment for the feed and each entry, an author, and links of whole addresses."""
        feed = await self.read(shop)
        assert feed.tag == f"{_ATOM}feed"
        assert _texts(feed.find(f"{_ATOM}author") or feed, "name") == ["Pet Store Service"]
        entries = feed.findall(f"{_ATOM}entry")
        for element in (feed, *entries):
            for name in ("id", "title", "updated"):
                (text,) = _texts(element, name)
                assert text
            (moment,) = _texts(element, "updated")
            assert datetime.fromisoformat(moment).tzinfo
            links = {link.get("rel"): link.get("href", "") for link in element.findall(f"{_ATOM}link")}
            assert links["alternate"].startswith("http://petstore.example/docs/changelog")
            assert ("self" in links) == (element is feed)
        identifiers = [_texts(element, "id")[0] for element in (feed, *entries)]
        assert len(set(identifiers)) == len(identifiers)
        assert _texts(feed, "updated") == [max(_texts(entry, "updated")[0] for entry in entries)]

    async def test_each_release_is_an_entry(self, shop: Shop) -> None:
        """It has its changes of the interface as HTML, at an anchor of the page; only what is released."""
        entries = (await self.read(shop)).findall(f"{_ATOM}entry")
        page = (await shop.call("GET", "/docs/changelog")).body.decode()
        released = re.findall(r"^## \[(.+)\] - ", TEXT, re.M)
        assert [_texts(entry, "title")[0] for entry in entries] == [f"Version {each}" for each in released]
        for entry in entries:
            link = entry.find(f"{_ATOM}link")
            assert link is not None
            assert f' id="{link.get("href", "").partition("#")[2]}"' in page
            told = entry.find(f"{_ATOM}content")
            assert told is not None
            assert told.get("type") == "html"
            shown = " ".join(content(page).text().split())
            body = content(f"<main>{told.text}</main>")
            assert " ".join(body.text().replace("Added", "").split())[:80] in shown
            assert "#" not in re.findall('href="(.)', told.text or "")

    async def test_an_identifier_never_changes(self) -> None:
        """A reader would see the entry as new."""
        found = {release.version: release.identifier for release in releases(TEXT, "")}
        assert found["1.1.0"] == "urn:uuid:c4279cfc-b6ab-515e-bb12-bb38e2d964eb"
        assert found["1.0.0"] == releases(TEXT.replace("2026-11-21", "2026-11-20"), "")[-1].identifier
