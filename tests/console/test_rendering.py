"""What rendering a page costs others."""

from __future__ import annotations

import gc

import pytest

from tests.support.console import Visitor


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
