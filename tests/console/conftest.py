"""A running service with its console, and people of each role at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.console import Visitor
from tests.support.service import Shop, open_shop


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path) as running:
        yield running


@pytest.fixture
async def viewer(shop: Shop) -> Visitor:
    return await Visitor(shop).sign_in_as("viewer")


@pytest.fixture
async def staff(shop: Shop) -> Visitor:
    return await Visitor(shop).sign_in_as("staff")


@pytest.fixture
async def operator(shop: Shop) -> Visitor:
    return await Visitor(shop).sign_in_as("operator")


@pytest.fixture
async def tls(tmp_path: Path) -> AsyncIterator[Shop]:
    """Behind a proxy with TLS on this machine, under a name."""
    folder = tmp_path / "tls"
    folder.mkdir()
    base_url = "https://shop.example/v1"
    async with open_shop(folder, trusted_proxies="127.0.0.1", base_url=base_url) as running:
        yield running
