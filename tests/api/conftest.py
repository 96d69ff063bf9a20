"""Fixtures for requests in process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.api.writing import Writing
from tests.support.service import Shop, open_shop


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """One for all tests of a module, with an animal: for requests that change nothing."""
    async with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        await opened.post({"name": "Mia", "categoryId": 2})
        yield opened


@pytest.fixture
def shared_shop(lasting_shop: Shop) -> Shop:
    """That, in a minute that nobody has used. A module whose `shop` it is runs in one event loop."""
    lasting_shop.clock.advance(60)
    return lasting_shop


@pytest.fixture(params=["createPet", "updatePet"])
async def writing(shop: Shop, request: pytest.FixtureRequest) -> Writing:
    """Each operation with the body of an animal, in a shop with one animal."""
    await shop.post({"name": "Mia", "categoryId": 2})
    return Writing(shop, request.param)


@pytest.fixture(params=["createPet", "updatePet"])
def shared_writing(shared_shop: Shop, request: pytest.FixtureRequest) -> Writing:
    """Each of them in the shared shop."""
    return Writing(shared_shop, request.param)
