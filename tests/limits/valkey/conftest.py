"""Outages end soon after their cause does."""

from __future__ import annotations

import pytest

from petstore.limiter.valkey import client


@pytest.fixture(autouse=True)
def _probing_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost Valkey is looked for again after 20 ms, where the service waits half a second."""
    monkeypatch.setattr(client, "PROBE_SECONDS", 0.02)
