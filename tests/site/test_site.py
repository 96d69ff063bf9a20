"""The pages as answers: their headers, the newcomer's two start pages, what is not there."""

from __future__ import annotations

import re

import pytest

from tests.support.service import Shop

PAGES = (
    "/", "/docs", "/docs/quickstart", "/docs/guide", "/docs/reference", "/docs/errors", "/docs/changelog",
    "/docs/deprecation",
)  # fmt: skip


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
