"""Replicas on the shared Valkey, by one clock. Outages end soon after their cause does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from petstore.limiter.valkey import client
from tests.support.clock import ManualClock
from tests.support.shared import Replicas
from tests.support.valkey import emptied_url


@pytest.fixture(autouse=True)
def _probing_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost Valkey is looked for again after 20 ms, where the service waits half a second."""
    monkeypatch.setattr(client, "PROBE_SECONDS", 0.02)


@pytest.fixture
async def replicas(clock: ManualClock) -> AsyncIterator[Replicas]:
    async with Replicas(emptied_url(), clock, steered=True) as opened:
        yield opened
