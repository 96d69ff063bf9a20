"""The Link of every error to its explanation (RFC 8288, relation `help`); checks.py has it of each answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from httpx2 import Response

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
    """As every other reference; one line, where a deprecated operation has links of its own."""
    async with open_shop(tmp_path, clock, base_url=base_url) as shop:
        answer = await shop.ask("GET", "/v1/nothing")
        assert answer.headers["link"] == f'<{documentation}/errors#not_found>; rel="help"'
        answer = await shop.ask("GET", "/v1/pets/7")
        links = Response(404, headers={"link": answer.headers["link"]}).links
        assert {relation: link["url"] for relation, link in links.items()} == {
            "deprecation": f"{documentation}/deprecation",
            "successor-version": f"{references}/pets?id=7",
            "help": f"{documentation}/errors#not_found",
        }
