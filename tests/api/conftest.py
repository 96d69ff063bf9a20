"""Fixtures for requests in process: the shop of these tests checks every answer whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.checks import CheckedShop, Writing, open_checked
from tests.support.clock import ManualClock


@pytest.fixture
async def shop(tmp_path: Path, clock: ManualClock) -> AsyncIterator[CheckedShop]:
    """The production service in process; each of its answers under /v1 is checked as it arrives."""
    async with open_checked(tmp_path, clock) as opened:
        yield opened


@pytest.fixture(params=["createPet", "updatePet"])
async def writing(shop: CheckedShop, request: pytest.FixtureRequest) -> Writing:
    """Each operation with the body of an animal, in a shop with one animal."""
    await shop.post({"name": "Mia", "categoryId": 2})
    return Writing(shop, request.param)
