"""A page of the documentation, added by the recipe: it is served and found in the navigation."""

from __future__ import annotations

from tests.support.service import Shop


async def test_the_page_is_served_and_found(shop: Shop) -> None:
    """It has its title; the overview leads to it."""
    page = await shop.call("GET", "/docs/welcome")
    assert page.status == 200
    assert "<h1" in page.body.decode()
    overview = (await shop.call("GET", "/docs")).body.decode()
    assert ">Welcome</a>" in overview
