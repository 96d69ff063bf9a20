"""Fixtures: the production service in process, each answer checked whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.checks import CheckedShop, open_checked
from tests.support.clock import ManualClock


@pytest.fixture
async def shop(tmp_path: Path, clock: ManualClock) -> AsyncIterator[CheckedShop]:
    """A running service with an account of a large quota."""
    async with open_checked(tmp_path, clock) as opened:
        yield opened
