"""Fixtures for requests in process."""

from __future__ import annotations

import pytest

from tests.api.writing import Writing
from tests.support.service import Shop


@pytest.fixture(params=["createPet", "updatePet"])
async def writing(shop: Shop, request: pytest.FixtureRequest) -> Writing:
    """Each operation with the body of an animal, in a shop with one animal."""
    await shop.post({"name": "Mia", "categoryId": 2})
    return Writing(shop, request.param)


@pytest.fixture(params=["createPet", "updatePet"])
def shared_writing(shared_shop: Shop, request: pytest.FixtureRequest) -> Writing:
    """Each of them in the shared shop."""
    return Writing(shared_shop, request.param)


@pytest.fixture
async def rex(shop: Shop) -> Shop:
    """Animal 1, Rex, is available."""
    await shop.post({"name": "Rex", "categoryId": 1})
    return shop
