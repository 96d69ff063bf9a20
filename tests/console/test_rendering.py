"""What rendering a page costs others."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from petstore.console.rendering import Page
from tests.support.console import HOST, Visitor
from tools.exchanges import arriving


@pytest.mark.parametrize("page", ["", "pets", "journal"])
async def test_a_page_leaves_no_garbage_to_other_requests(viewer: Visitor, page: str) -> None:
    """A template makes hundreds of objects that need the garbage collector: it has run before the answer."""
    await viewer.get(page)
    gc.collect()
    gc.disable()
    try:
        await viewer.get(page)
        left = gc.collect()
    finally:
        gc.enable()
    assert left < 50


async def test_what_nobody_waits_for_is_not_made(viewer: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody loads a page again and again: the others at the console wait for none of them."""
    made = list[str]()
    fill = Page.fill

    def filled(page: Page, *given: Any, **named: Any) -> None:
        made.append(page.template)
        fill(page, *given, **named)

    monkeypatch.setattr(Page, "fill", filled)
    headers = [("cookie", f"petstore-session={viewer.cookies['petstore-session']}"), ("host", HOST)]
    left = [
        asyncio.create_task(viewer.shop.call("GET", "/console/pets", headers, arriving([], leaves=True)))
        for _ in range(20)
    ]
    assert (await viewer.get("orders")).status == 200
    await asyncio.gather(*left)
    assert made == ["orders.html"]
