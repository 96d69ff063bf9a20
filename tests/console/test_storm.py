"""A storm of wrong passwords; `python -m verification.torture signins` makes greater ones, at replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.sign_ins import COMPARED, replicas, storm

TRIES = 400


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that cost nothing: they are counted here."""
    monkeypatch.setattr("petstore.console.passwords._MEMORY_KIB", 8)


async def test_on_one_service(tmp_path: Path) -> None:
    """The bound holds exactly on SQLite; one hash for each compared password, and anna gets in."""
    async with replicas(f"sqlite:///{tmp_path}/petstore.db", ManualClock(), 1) as services:
        seen = await storm(services, TRIES, 1)
    assert seen.faults() == []
    assert (seen.statuses, seen.hashes) == ({403: COMPARED, 429: TRIES - COMPARED}, COMPARED + 3)
