"""The pages as answers: their headers, the newcomer's two start pages, what is not there."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.support.service import Shop

PAGES = (
    "/", "/docs", "/docs/quickstart", "/docs/guide", "/docs/reference", "/docs/errors", "/docs/changelog",
    "/docs/deprecation",
)  # fmt: skip


class _Anchors(HTMLParser):
    """The identifiers of a page, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.identifiers: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.identifiers.append(value or "")
            elif name in ("href", "src"):
                self.references.append(value or "")


@pytest.mark.parametrize("prefix", ["", "/shop/petstore"])
async def test_every_link_leads_somewhere(shop: Shop, prefix: str) -> None:
    """To a path that answers and an anchor that exists, also when a proxy cuts a prefix off each path."""
    pages: dict[str, _Anchors] = {}

    async def look(path: str) -> _Anchors:
        if path not in pages:
            answer = await shop.call("GET", path, [("accept", "text/html")])
            assert answer.status == 200 or (path, answer.status) == ("/console", 303), path
            pages[path] = _Anchors(answer.body.decode())
        return pages[path]

    for path in PAGES:
        page = await look(path)
        assert len(set(page.identifiers)) == len(page.identifiers)
        for reference in page.references:
            target = urlsplit(urljoin(f"http://here{prefix}{path}", reference))
            if target.netloc != "here":
                continue
            assert target.path.startswith(f"{prefix}/"), reference
            found = await look(target.path.removeprefix(prefix))
            assert not target.fragment or unquote(target.fragment) in found.identifiers, reference


class Test200:
    """What is there."""

    @pytest.mark.parametrize("path", PAGES)
    async def test_a_page_carries_the_strict_policy(self, shop: Shop, path: str) -> None:
        """Scripts from here only, nothing from another host, no frame around it, nothing evaluated."""
        answer = await shop.call("GET", path, [("accept", "text/html")])
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == policy["form-action"] == "'none'"
        assert not re.search(r"https?:|\*|unsafe-eval", answer.headers["content-security-policy"])

    async def test_a_newcomer_without_a_browser_gets_json(self, shop: Shop) -> None:
        """`curl` at the root is told where the interface, the reference and the contract are."""
        answer = await shop.call("GET", "/")
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert told["interface"] == "/v1"
        for path in (told["reference"], told["openapi"]):
            assert (await shop.call("GET", path)).status == 200

    async def test_the_deprecation_notice_names_the_published_date(self, shop: Shop) -> None:
        """What the Link of getPet leads to says when the operation goes and what replaces it."""
        answer = await shop.call("GET", "/docs/deprecation")
        assert b"5 December 2030" in answer.body
        assert b"GET /v1/pets?id=7" in answer.body
        assert b"GET /v1/pets?status=available" in answer.body
