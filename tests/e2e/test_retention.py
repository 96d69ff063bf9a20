"""PETSTORE_JOURNAL_KEEP of a real service: its background process removes what is older, and says so once."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from petstore.core.clock import SystemClock
from petstore.core.durations import DAY_MS
from petstore.core.pets import NewPet
from petstore.storage.backend import backend_for
from tests.support.backends import in_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, written
from tests.support.server import running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def fill(url: str) -> None:
    """Two changes of a hundred days ago, and one of now."""
    clock = ManualClock(SystemClock().now_ms() - 100 * DAY_MS)
    store = backend_for(url).open(clock)
    for _ in range(2):
        await store.pets.add(NewPet("Rex", 1), ACTOR)
    clock.ms += 100 * DAY_MS
    await store.pets.add(NewPet("Tom", 1), ACTOR)
    await store.close()


def animals(url: str) -> list[str]:
    return [line for line in in_store(url, written) if line.startswith("pet.")]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_older_changes_leave_only_where_it_is_set(url: str, tmp_path: Path) -> None:
    """The journal is kept whole until a reload with the setting, and then told of once."""
    asyncio.run(fill(url))
    settings = tmp_path / "settings.toml"
    settings.touch()
    with running_server(tmp_path, database_url=url, config=str(settings)) as server:
        wait_for(lambda: b"petstore_background_up 1" in server.request("GET", "/metrics").body, "a process")
        settings.write_text("journal_keep = '30d'\n")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: '"removed"' in server.log, "the removal")
        assert server.terminate() == 0
        said = [json.loads(line) for line in server.log.splitlines() if re.search('"(reload|removed)"', line)]
    assert animals(url) == ["pet.added pet:3"]
    assert [line["event"] for line in said] == ["reload", "removed"]
    assert (said[1]["entries"], said[1]["usage_days"]) == (2, 0)
