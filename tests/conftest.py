"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.service import Shop, open_shop


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def shop(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
    """The production service in process, on a file of its own."""
    async with open_shop(tmp_path, clock) as opened:
        yield opened
