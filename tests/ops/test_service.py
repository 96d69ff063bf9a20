"""What a service opens is closed in the opposite order, after a failed start too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from petstore import config
from petstore.ops.flusher import CounterFlusher
from petstore.ops.log_writers import LogWriter
from petstore.storage.sqlite.store import SqliteStore
from petstore.wiring import service
from tests.support.clock import ManualClock


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    return config.load({"PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/petstore.db"})


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was saved and closed, in order."""
    calls: list[str] = []
    for owner, name in ((CounterFlusher, "save"), (SqliteStore, "close"), (LogWriter, "close")):
        original: Any = getattr(owner, name)

        def noting(self: object, call: Any = original, told: str = f"{owner.__name__}.{name}") -> Any:
            calls.append(told)
            return call(self)

        monkeypatch.setattr(owner, name, noting)
    return calls


async def test_a_stop_saves_counters_before_it_closes_store_and_log(
    settings: config.Settings, closed: list[str]
) -> None:
    """Counters need the store, and the log reports what fails."""
    running = await service.build(settings, ManualClock())
    await running.stop()
    assert closed == ["CounterFlusher.save", "SqliteStore.close", "LogWriter.close"]


async def test_a_start_that_fails(
    settings: config.Settings, closed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing stays open: the next attempt finds the database as it was."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(service, "measure", fail)
    with pytest.raises(ZeroDivisionError):
        await service.build(settings, ManualClock())
    assert closed == ["SqliteStore.close", "LogWriter.close"]
