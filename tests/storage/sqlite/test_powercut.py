"""A power cut loses nothing that was acknowledged (I2), and the reply waits for the disk.

The long campaign: python -m verification.torture powercut
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import apsw
import pytest

from petstore.storage.sqlite import schema
from tests.support import powercut
from tests.support.disk import Operation, mounted_disk
from tests.support.service import open_shop


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> powercut.Recording:
    """The recording of a whole script of additions."""
    return powercut.record(tmp_path_factory.mktemp("powercut"), 1, jobs=60)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost(tmp_path: Path, recording: powercut.Recording) -> None:
    """60 cuts, with every strategy of forgetting and tearing."""
    assert len(recording.added) >= 60
    for cut in powercut.choose(recording, 1, 60):
        path = powercut.leave(recording, cut, tmp_path / "cut")
        assert powercut.check(recording, cut, path) == [], cut


def test_a_cut_while_the_file_is_made(tmp_path: Path) -> None:
    """Up to its first log, whatever the disk has of the file and its journal: the next start makes it."""
    recording = powercut.record(tmp_path, 1, jobs=6)
    log = next(at for at, event in enumerate(recording.events) if event.name.endswith("-wal"))
    for at in range(1, log + 1):
        for strategy in powercut.STRATEGIES:
            for seed in "12":
                cut = powercut.Cut(at, strategy, seed)
                path = powercut.leave(recording, cut, tmp_path / "cut")
                assert powercut.check(recording, cut, path) == [], cut


def test_what_another_program_left_half_done_is_undone_and_no_more(tmp_path: Path) -> None:
    """A wrong address leads to its file: the mode and the form of the journal stay as they are."""
    working, path = tmp_path / "working.db", tmp_path / "left.db"
    connection = apsw.Connection(str(working))
    connection.execute("CREATE TABLE t (a); PRAGMA cache_size = 1; BEGIN")
    connection.executemany("INSERT INTO t VALUES (randomblob(1000))", [()] * 500)
    shutil.copy(working, path)
    shutil.copy(f"{working}-journal", f"{path}-journal")
    connection.close()
    path.chmod(0o666)
    assert not schema.read_file(str(path), 1_000).exists
    assert path.stat().st_mode & 0o777 == 0o666
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM t").get == 0
    assert connection.execute("PRAGMA journal_mode").get == "delete"
    connection.close()


def test_the_cuts_can_lose_something(tmp_path: Path, recording: powercut.Recording) -> None:
    """The test sees: were the log not synced at the commits, acknowledged animals would be lost."""
    kept: list[powercut.Event] = []
    places: list[int] = []
    for event in recording.events:
        places.append(len(kept))
        first = all(one.name != event.name or one.operation != "sync" for one in kept)
        if event.operation != "sync" or not event.name.endswith("-wal") or first:
            kept.append(event)
    places.append(len(kept))
    added = [(places[at], pet_id, name) for at, pet_id, name in recording.added]
    forgetful = powercut.Recording(kept, added, recording.attempted)
    assert any(
        fault.startswith("lost")
        for cut in powercut.choose(forgetful, 1, 50)
        for fault in powercut.check(forgetful, cut, powercut.leave(forgetful, cut, tmp_path / "cut"))
    )


async def test_every_reply_of_a_group_comes_after_its_sync(tmp_path: Path) -> None:
    """Forty at once: at each answer its animal stands in a part of the log that was synced."""
    written: list[bytes] = []
    synced: list[bytes] = []

    def remember(operation: Operation, path: str, _offset: int, data: bytes) -> None:
        if operation == "write" and path.endswith("-wal"):
            written.append(bytes(data))
        elif operation == "sync" and path.endswith("-wal"):
            synced.append(b"".join(written))
            written.clear()

    with mounted_disk() as disk:
        async with open_shop(tmp_path) as shop:
            disk.after = remember

            async def add(number: int) -> bool:
                name = f"marker-{number:04}"
                answer = await shop.post({"name": name, "categoryId": number})
                assert answer.status == 201
                return any(name.encode() in data for data in synced)

            assert await asyncio.gather(*(add(number) for number in range(40))) == [True] * 40
