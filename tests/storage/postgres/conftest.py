"""Stores on a PostgreSQL database of their own, and a network before it that misbehaves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from petstore.storage.store import Store
from tests.support.backends import opened_store
from tests.support.clock import ManualClock
from tests.support.postgres import listening_address
from tests.support.proxy import Proxy, open_proxy


@pytest.fixture
async def store(database: str, clock: ManualClock) -> AsyncIterator[Store]:
    async with opened_store(database, clock) as opened:
        yield opened


@pytest.fixture
async def proxy(database: str) -> AsyncIterator[Proxy]:
    async with open_proxy(listening_address(database)) as opened:
        yield opened
