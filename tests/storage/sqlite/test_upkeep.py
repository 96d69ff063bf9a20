"""The operator's tools: check, online backup, restore, and the lock of the one server (I19)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import pytest

from petstore.core.errors import ConfigurationError, OperatorError
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, Pet
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite import upkeep, whole_copies
from petstore.storage.sqlite.lock import lock_for_serving
from petstore.storage.sqlite.schema import migrate
from petstore.storage.sqlite.store import SqliteStore
from tests.support.backends import execute_in_file
from tests.support.clock import ManualClock
from tests.support.disk import mounted_disk
from tests.support.journal import ACTOR
from tests.support.waiting import until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
async def store(path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(str(path), clock, SqliteOptions())
    await opened.accounts.add("shop", FREE, ACTOR)
    await opened.keys.issue("shop", "test", ACTOR)
    await opened.pets.add(NewPet("Rex", 1), ACTOR)
    yield opened
    await opened.close()


def pets_in(path: Path) -> dict[int, str]:
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return dict(connection.execute("SELECT id, name FROM pets"))


async def with_backup(path: Path, clock: ManualClock) -> tuple[SqliteStore, Path]:
    """A store with the animals a and b, and a backup with the first one."""
    store, backup = SqliteStore(str(path), clock, SqliteOptions()), path.with_name("backup.db")
    await store.pets.add(NewPet("a", 1), ACTOR)
    upkeep.backup(str(path), str(backup), 1_000)
    await store.pets.add(NewPet("b", 1), ACTOR)
    return store, backup


def beside_it(path: Path, suffix: str) -> Path:
    """The file whose name is that of the database and a suffix."""
    return Path(f"{path}{suffix}")


def beside(path: Path) -> list[str]:
    """Every file whose name begins as this one's does."""
    return sorted(file.name for file in path.parent.iterdir() if file.name.startswith(path.name))


class TestBackup:
    """A whole copy while the database is in use."""

    async def test_no_room_for_it(self, store: SqliteStore, path: Path) -> None:
        """Told as what it is, and nothing is left."""
        target = path.with_name("backup.db")
        with mounted_disk() as disk:
            disk.fail("write", apsw.FullError, suffix="backup.db.partial", times=1_000)
            with pytest.raises(OperatorError, match=r"written to .*: No space left on device\. Make room"):
                upkeep.backup(str(path), str(target), 1_000)
        assert beside(target) == []

    async def test_it_is_on_the_disk_before_it_has_its_name(
        self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is named before anybody is told: a power cut leaves all of it or nothing. So does a restore."""
        target, place = path.with_name("backup.db"), path.with_name("restored.db")
        synced: list[tuple[int, int, bool]] = []

        def sync(file: int) -> None:
            status = os.fstat(file)
            is_folder = stat.S_ISDIR(status.st_mode)
            synced.append((status.st_ino, 0 if is_folder else status.st_size, made.exists()))

        monkeypatch.setattr(os, "fsync", sync)
        for made in (target, place):
            synced.clear()
            if made == target:
                upkeep.backup(str(path), str(made), 1_000)
            else:
                upkeep.restore(str(made), str(target), ACTOR, ManualClock(), 1_000)
            whole, folder = made.stat(), made.parent.stat()
            assert synced == [(whole.st_ino, whole.st_size, False), (folder.st_ino, 0, True)]

    async def test_two_at_once_to_one_name(
        self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first one is whole; the other is told, in its middle and at its end, and leaves nothing."""
        target = path.with_name("backup.db")
        original = whole_copies.whole_copy

        @contextlib.contextmanager
        def beside_another(*arguments: str) -> Iterator[str]:
            monkeypatch.setattr(upkeep, "whole_copy", original)
            with original(*arguments) as copy:  # type: ignore[arg-type]
                with pytest.raises(OperatorError, match="Another process is writing"):
                    upkeep.backup(str(path), str(target), 1_000)
                target.write_text("of a program that knows no such rules")
                yield copy

        monkeypatch.setattr(upkeep, "whole_copy", beside_another)
        with pytest.raises(OperatorError, match="exists already"):
            upkeep.backup(str(path), str(target), 1_000)
        assert beside(target) == ["backup.db"]
        assert target.read_text().startswith("of a program")

    async def test_a_link_in_its_way(self, store: SqliteStore, path: Path) -> None:
        """A backup overwrites nothing that a stranger's link leads to, in a directory that others write."""
        target = path.with_name("backup.db")
        victim = path.with_name("victim")
        beside_it(target, ".partial").symlink_to(victim)
        with pytest.raises(OperatorError, match="can't be written to"):
            upkeep.backup(str(path), str(target), 1_000)
        assert not victim.exists()

    async def test_leftovers_of_an_interrupted_backup_are_in_nobodys_way(
        self, store: SqliteStore, path: Path
    ) -> None:
        """The partial file of a backup that was killed is replaced."""
        target = path.with_name("backup.db")
        beside_it(target, ".partial").write_bytes(b"half")
        assert upkeep.backup(str(path), str(target), 1_000).problems == []
        assert beside(target) == ["backup.db"]

    async def test_it_ends_while_others_write_without_a_pause(
        self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A copy of one moment: a write in between neither shows in it nor makes it start anew."""
        for number in range(200):
            await store.pets.add(NewPet(f"{number:0250}", 1), ACTOR)
        outside = apsw.Connection(str(path))
        steps = 0

        class OnePage:
            """The length of a step; whenever it is looked at, somebody has written once more."""

            def __index__(self) -> int:
                nonlocal steps
                steps += 1
                assert steps < 1_000, "every write makes the copy start anew"
                outside.execute("UPDATE pets SET category_id = category_id + 1 WHERE id = 1")
                return 1

        monkeypatch.setattr(whole_copies, "_PAGES_A_STEP", OnePage())
        target = path.with_name("backup.db")
        report = upkeep.backup(str(path), str(target), 10_000)
        outside.close()
        assert (report.pets, report.problems) == (201, [])
        assert steps > 10

    async def test_it_has_exactly_what_was_acknowledged_before_it(
        self, store: SqliteStore, path: Path
    ) -> None:
        """I19: while animals are added, every one that was answered before the backup began is in it;
        what is in it beyond that is a run without a gap, and whole."""
        acknowledged: list[Pet] = []
        going = [True]

        async def add() -> None:
            while going[0]:
                created = await store.pets.add(NewPet(f"pet {len(acknowledged)}", 1), ACTOR)
                acknowledged.append(created.pet)

        writers = [asyncio.create_task(add()) for _ in range(4)]
        for number in range(5):
            count = len(acknowledged) + 20
            await until(lambda: len(acknowledged) >= count)  # noqa: B023
            before = list(acknowledged)
            target = path.with_name(f"backup-{number}.db")
            report = await asyncio.to_thread(upkeep.backup, str(path), str(target), 10_000)
            copied = pets_in(target)
            assert report.problems == []
            assert {pet.id: pet.name for pet in before}.items() <= copied.items()
            assert sorted(copied) == list(range(1, len(copied) + 1))
        going[0] = False
        await asyncio.gather(*writers)


class TestRestore:
    """A backup takes the database's place; what was there is kept beside it."""

    async def test_a_restored_backup_has_exactly_its_animals(self, path: Path, clock: ManualClock) -> None:
        """I19: back up, lose, restore, verify: exactly the animals of the backup; ids go on after them."""
        store = SqliteStore(str(path), clock, SqliteOptions())
        for name in ("a", "b", "c"):
            await store.pets.add(NewPet(name, 1), ACTOR)
        backup = path.with_name("backup.db")
        upkeep.backup(str(path), str(backup), 1_000)
        await store.pets.add(NewPet("after the backup", 1), ACTOR)
        await store.close()
        restored_as = upkeep.restore(str(path), str(backup), ACTOR, clock, 1_000)
        assert restored_as.report.pets == 3
        assert pets_in(path) == {1: "a", 2: "b", 3: "c"}
        assert restored_as.kept == f"{path}.before-restore-20270115T080030Z"
        assert len(pets_in(Path(restored_as.kept))) == 4
        restored = SqliteStore(str(path), clock, SqliteOptions())
        assert (await restored.pets.add(NewPet("next", 1), ACTOR)).pet.id == 4
        await restored.close()

    async def test_a_newer_backup_is_refused(self, store: SqliteStore, path: Path) -> None:
        """This program could not serve it."""
        backup = path.with_name("backup.db")
        upkeep.backup(str(path), str(backup), 1_000)
        execute_in_file(backup, "PRAGMA user_version = 99")
        with pytest.raises(ConfigurationError, match="schema version 99"):
            upkeep.restore(str(path), str(backup), ACTOR, ManualClock(), 1_000)

    async def test_an_old_log_does_not_come_back(self, path: Path, clock: ManualClock) -> None:
        """A server was killed and left its log beside the file: the restored one must not take it up."""
        store, backup = await with_backup(path, clock)
        killed = {suffix: beside_it(path, suffix).read_bytes() for suffix in ("", "-wal")}
        await store.close()
        for suffix, content in killed.items():
            beside_it(path, suffix).write_bytes(content)
        kept = upkeep.restore(str(path), str(backup), ACTOR, clock, 1_000).kept
        assert pets_in(path) == {1: "a"}
        assert kept is not None
        assert pets_in(Path(kept)) == {1: "a", 2: "b"}

    async def test_nor_does_one_whose_database_was_removed(self, path: Path, clock: ManualClock) -> None:
        """An operator made room for the restore by removing the file, and not the log beside it."""
        store, backup = await with_backup(path, clock)
        log = beside_it(path, "-wal").read_bytes()
        await store.close()
        beside_it(path, "").unlink()
        beside_it(path, "-wal").write_bytes(log)
        assert upkeep.restore(str(path), str(backup), ACTOR, clock, 1_000).kept is None
        assert pets_in(path) == {1: "a"}


class TestLock:
    """One server for one database, since the counters live in its process."""

    def test_it_is_on_the_file_and_not_on_its_name(self, path: Path, tmp_path: Path) -> None:
        """A hard link has a lock file of its own, and leads to the same database."""
        migrate(str(path), 1_000)
        other = tmp_path / "other.db"
        other.hardlink_to(path)
        with (
            lock_for_serving(str(path)),
            pytest.raises(OperatorError, match=r"using .*other\.db under another name"),
        ):
            lock_for_serving(str(other))

    def test_a_program_of_before_is_kept_out_too(self, path: Path, tmp_path: Path) -> None:
        """It knows the lock file alone, beside the name that it was given: link or not, that one is held."""
        migrate(str(path), 1_000)
        link = tmp_path / "link.db"
        link.symlink_to(path)
        with lock_for_serving(str(link)):
            for name in (path, link):
                with beside_it(name, ".lock").open() as lock, pytest.raises(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
