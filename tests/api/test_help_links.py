"""References in Link and Location; the Link of every error to its explanation (RFC 8288, relation `help`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from httpx2 import Response

from tests.api.world import URL
from tests.support.clock import ManualClock
from tests.support.service import open_shop


@pytest.mark.parametrize(
    ("base_url", "documentation", "references"),
    [
        ("", "/docs", "/v1"),
        ("https://a.example/v1", "https://a.example/docs", "https://a.example/v1"),
        ("https://a.example/shop/v1", "https://a.example/shop/docs", "https://a.example/shop/v1"),
    ],
    ids=["no base address", "a base address", "one with a prefix"],
)
async def test_below_the_base_address(
    tmp_path: Path, clock: ManualClock, base_url: str, documentation: str, references: str
) -> None:
    """Every reference; one line, where a deprecated operation has links of its own."""
    async with open_shop(tmp_path, clock, base_url=base_url) as shop:
        for number in (1, 2):
            created = await shop.post({"name": "n", "categoryId": 1})
            assert created.headers["location"] == f"{references}/pets/{number}"
        page = await shop.ask("GET", "/v1/pets?limit=1")
        assert page.links["first"] == f"{references}/pets?limit=1"
        assert page.links["next"].startswith(f"{references}/pets?limit=1&cursor=")
        hook = await shop.send("POST", "/v1/webhooks", {"url": URL})
        assert hook.headers["location"] == f"{references}/webhooks/1"
        deliveries = await shop.ask("GET", "/v1/webhooks/1/deliveries")
        assert deliveries.links["first"] == f"{references}/webhooks/1/deliveries?limit=20"
        answer = await shop.ask("GET", "/v1/nothing")
        assert answer.headers["link"] == f'<{documentation}/errors#not_found>; rel="help"'
        answer = await shop.ask("GET", "/v1/pets/7")
        links = Response(404, headers={"link": answer.headers["link"]}).links
        assert {relation: link["url"] for relation, link in links.items()} == {
            "deprecation": f"{documentation}/deprecation",
            "successor-version": f"{references}/pets?id=7",
            "help": f"{documentation}/errors#not_found",
        }
