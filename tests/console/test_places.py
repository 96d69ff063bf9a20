"""No page is forgotten by the tests that look at every page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from starlette.routing import Route

from petstore.console import app
from petstore.console.guard import Guard
from petstore.console.visit import View
from tests.support.console_places import PLACES
from tests.support.service import open_shop


async def test_every_page_has_its_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path that a browser can open is in tests/support/console_places.py, and no other."""
    views: list[View] = []
    make = app.routes_of

    def seen(found: Sequence[View], guard: Guard) -> list[Route]:
        views.extend(found)
        return make(found, guard)

    monkeypatch.setattr(app, "routes_of", seen)
    async with open_shop(tmp_path):
        assert {view.path for view in views if view.method == "GET"} == set(PLACES)
