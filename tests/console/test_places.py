"""No page is forgotten by the tests that look at every page."""

from __future__ import annotations

from pathlib import Path

from tests.support.console import recorded_consoles
from tests.support.console_places import PLACES
from tests.support.service import open_shop


async def test_every_page_has_its_places(tmp_path: Path) -> None:
    """Each path that a browser can open is in tests/support/console_places.py, and no other."""
    with recorded_consoles() as consoles:
        async with open_shop(tmp_path):
            views = consoles[0].views()
    assert {view.path for view in views if view.method == "GET"} == set(PLACES)
