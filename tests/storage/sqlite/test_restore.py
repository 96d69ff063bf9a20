"""A restore beside other processes: one transaction for them, and nothing that was acknowledged gets lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import Mock

import apsw
import pytest

from petstore.core.errors import LinkGone, OperatorError, StoreUnavailable
from petstore.core.people import Role
from petstore.storage.backend import backend_for
from petstore.storage.sqlite import upkeep, whole_copies
from petstore.storage.sqlite.connection import open_writer
from petstore.storage.sqlite.schema import migrate
from tests.support.backends import execute_in_file
from tests.support.clock import ManualClock
from tests.support.disk import mounted_disk
from tests.support.journal import ACTOR

INSERT = "INSERT INTO pets (name, category_id, status) VALUES (?, 1, 'sold')"
BACKED_UP = ["a", "b"]
LATER = [*BACKED_UP, "later"]


class Place:
    """A database with three animals, and a backup from when it had two."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "shop.db"
        self.backup = folder / "backup.db"
        self.clock = ManualClock()
        migrate(str(self.path), 1_000)
        self.add(*BACKED_UP)
        upkeep.backup(str(self.path), str(self.backup), 1_000)
        self.add("later")

    def add(self, *names: str) -> None:
        """What a command in another process does."""
        connection = open_writer(str(self.path), 0)
        for name in names:
            connection.execute(INSERT, (name,))
        connection.close()

    def restore(self, source: Path | str | None = None) -> upkeep.Restored:
        return upkeep.restore(str(self.path), str(source or self.backup), ACTOR, self.clock, 100)

    def names(self, path: Path | str | None = None) -> list[str]:
        file = Path(path or self.path)
        assert execute_in_file(file, "PRAGMA integrity_check") == [("ok",)]
        return [row[0] for row in execute_in_file(file, "SELECT name FROM pets ORDER BY id")]

    def files(self) -> list[str]:
        return sorted(file.name for file in self.path.parent.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def in_the_middle(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen when the restore has the lock and has not copied a page yet."""
    original = upkeep._move_versions_past

    def hooked(path: str, whole_copy: apsw.Connection, busy_timeout_ms: int) -> None:
        act()
        original(path, whole_copy, busy_timeout_ms)

    monkeypatch.setattr(upkeep, "_move_versions_past", hooked)


class TestJournal:
    """The restored journal tells of the restore."""

    @pytest.mark.parametrize("there", ["as it was", "damaged", "missing"])
    def test_one_entry_with_the_backups_name(self, place: Place, there: str) -> None:
        """I22: whatever stood in the database's place; what was kept and the backup are as they were."""
        if there == "damaged":
            place.path.write_bytes(b"no database at all, " * 500)
        elif there == "missing":
            for file in place.path.parent.glob("shop.db*"):
                file.unlink()
        backup = place.backup.read_bytes()
        place.restore()
        rows = execute_in_file(place.path, "SELECT actor, subject, action, before, after FROM journal")
        assert rows == [(ACTOR, "store", "restored", None, '{"backup":"backup.db"}')]
        assert place.backup.read_bytes() == backup


class TestKept:
    """What was there is never lost."""

    def test_a_restore_is_undone_by_restoring_what_it_kept(self, place: Place) -> None:
        """The animals are back, and both kept copies are there, though it happened in the same second."""
        first = place.restore()
        assert place.names() == BACKED_UP
        second = place.restore(first.kept)
        assert place.names() == LATER
        assert second.report.pets == 3
        assert (second.kept, first.kept) == (
            f"{first.kept}-2",
            f"{place.path}.before-restore-20270115T080030Z",
        )
        assert (place.names(first.kept), place.names(second.kept)) == (LATER, BACKED_UP)

    def test_the_database_itself_is_no_backup(self, place: Place) -> None:
        """It is none by whichever name; nothing is touched."""
        other_name = place.path.with_name("link.db")
        other_name.symlink_to(place.path)
        before = place.files()
        for source in (place.path, other_name):
            with pytest.raises(OperatorError, match="is the database itself"):
                place.restore(source)
        assert place.names() == LATER
        assert place.files() == before

    def test_a_backup_with_the_name_of_an_unfinished_copy_is_not_overwritten(self, place: Place) -> None:
        """Refused, and the file is still there."""
        source = place.path.with_name("shop.db.partial")
        place.backup.rename(source)
        with pytest.raises(OperatorError, match="give it another"):
            place.restore(source)
        assert place.names(source) == BACKED_UP
        assert place.names() == LATER

    @pytest.mark.parametrize(
        "damage", [b"no database at all, " * 500, b"SQLite format 3\x00" + b"\xff" * 8_192, 18, 47]
    )
    def test_a_file_that_cannot_be_used_goes_aside_as_it_is(self, place: Place, damage: bytes | int) -> None:
        """The very time when a restore is needed. A number: where a flipped bit makes the header say that
        SQLite is too old, so that the file is read-only, or of an unknown format."""
        content = bytearray(place.path.read_bytes() if isinstance(damage, int) else damage)
        if isinstance(damage, int):
            content[damage] |= 64
        place.path.write_bytes(content)
        kept = place.restore().kept
        assert place.names() == BACKED_UP
        assert kept is not None
        assert Path(kept).read_bytes() == content

    def test_nothing_else_is_left_behind(self, place: Place) -> None:
        """One file again, in the mode in which it was, the lock and what was kept."""
        kept = place.restore().kept
        assert kept is not None
        assert place.files() == ["backup.db", "shop.db", Path(kept).name, "shop.db.lock"]
        assert place.path.read_bytes()[18:20] == b"\x02\x02"  # a write-ahead log

    def test_pages_of_another_size(self, place: Place) -> None:
        """A backup with pages of another size, as another tool may have rewritten it, is restored."""
        other = apsw.Connection(str(place.backup))
        other.execute("PRAGMA page_size = 1024")
        other.execute("VACUUM")
        other.close()
        place.restore()
        assert place.names() == BACKED_UP


class TestBesideOthers:
    """Other processes have the database open."""

    def test_their_later_writes_are_in_the_restored_database(self, place: Place) -> None:
        """It is the same file, so nothing goes into one that nobody will see."""
        other = apsw.Connection(str(place.path))
        assert other.execute("SELECT count(*) FROM pets").get == 3
        place.restore()
        assert [row[0] for row in other.execute("SELECT name FROM pets ORDER BY id")] == BACKED_UP
        other.execute(INSERT, ("after",))
        assert other.execute("PRAGMA journal_mode").get == "wal"
        other.close()
        assert place.names() == [*BACKED_UP, "after"]

    def test_a_reader_keeps_its_snapshot(self, place: Place) -> None:
        """What it reads in one transaction is of one state, and it does not hold up the restore."""
        other = apsw.Connection(str(place.path))
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM pets").get == 3
        place.restore()
        assert other.execute("SELECT count(*) FROM pets").get == 3
        other.execute("COMMIT")
        assert other.execute("SELECT count(*) FROM pets").get == 2
        other.close()

    def test_nobody_writes_in_the_middle(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A write is refused as busy, or waits until it can go into the restored database."""
        refused: list[bool] = []

        def write() -> None:
            with pytest.raises(apsw.BusyError):
                place.add("meanwhile")
            refused.append(True)

        in_the_middle(monkeypatch, write)
        kept = place.restore().kept
        assert refused == [True]
        assert (place.names(), place.names(kept)) == (BACKED_UP, LATER)

    def test_what_is_written_just_before_is_kept(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A write while the backup is read, when the lock is not held yet, is in the kept copy."""
        original = whole_copies.whole_copy

        def stage(source: str, *more: object, **options: object) -> AbstractContextManager[str]:
            if source == str(place.backup):
                place.add("just before")
            return original(source, *more, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(upkeep, "whole_copy", stage)
        assert place.names(place.restore().kept) == [*LATER, "just before"]

    def test_a_writer_in_the_middle_of_a_transaction_stops_the_restore(self, place: Place) -> None:
        """Busy, and nothing is changed, nothing left."""
        before = {*place.files(), "shop.db.lock"}
        other = apsw.Connection(str(place.path))
        other.execute("BEGIN IMMEDIATE")
        other.execute(INSERT, ("mine",))
        with pytest.raises(StoreUnavailable, match="busy with other writes"):
            place.restore()
        other.execute("COMMIT")
        other.close()
        assert place.names() == [*LATER, "mine"]
        assert set(place.files()) == before

    @pytest.mark.parametrize("more", [0, 3])
    def test_the_versions_are_new_to_everybody(self, place: Place, more: int) -> None:
        """A restore makes new versions: those of the database and of the backup do not come again."""
        for _ in range(more):
            execute_in_file(place.backup, "UPDATE pets SET category_id = category_id + 1")
        versions = "SELECT catalogue, keyring FROM versions"
        seen = [*execute_in_file(place.backup, versions), *execute_in_file(place.path, versions)]
        place.restore()
        (now,) = execute_in_file(place.path, versions)
        assert all(now[which] > before[which] for which in (0, 1) for before in seen)

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE versions SET catalogue = 9223372036854775807",
            "DELETE FROM versions",
            "ALTER TABLE versions RENAME TO others; CREATE TABLE versions (catalogue, keyring);"
            " INSERT INTO versions VALUES (NULL, 'x'), (x'00', 2), (3, 4)",
        ],
    )
    def test_damaged_versions_do_not_prevent_it(self, place: Place, damage: str) -> None:
        """The very table from which it reads."""
        execute_in_file(place.path, damage)
        place.restore()
        assert place.names() == BACKED_UP


class TestInterrupted:
    """The old database is whole, whatever happens."""

    def test_an_error_in_the_middle(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """Undone at once; others go on."""

        def fail() -> None:
            raise ZeroDivisionError

        other = apsw.Connection(str(place.path))
        with monkeypatch.context() as patched:
            in_the_middle(patched, fail)
            with pytest.raises(ZeroDivisionError):
                place.restore()
        other.execute(INSERT, ("goes on",))
        other.close()
        assert place.names() == [*LATER, "goes on"]
        place.restore()
        assert place.names() == BACKED_UP

    @pytest.mark.parametrize(
        ("fault", "error", "said"),
        [(apsw.IOError, StoreUnavailable, "disk"), (apsw.FullError, OperatorError, "nothing was restored")],
    )
    def test_the_disk_fails(
        self, place: Place, fault: type[apsw.Error], error: type[Exception], said: str
    ) -> None:
        """Told as what it is. A full one gets no fuller: what was kept of a database that is still there
        would leave no room for the next try."""
        with mounted_disk() as disk:
            disk.fail("write", fault, suffix="shop.db-wal", times=1_000)
            with pytest.raises(error, match=said):
                place.restore()
        assert place.names() == LATER
        assert any(place.path.parent.glob("*.before-restore-*")) is (fault is not apsw.FullError)

    @pytest.mark.parametrize("there", ["sound", "damaged"])
    def test_no_room_for_the_first_copy(self, place: Place, there: str) -> None:
        """What was there stays in its place: without a database a service would start with an empty one."""
        if there == "damaged":
            place.path.write_bytes(b"no database at all, " * 500)
        before = place.path.read_bytes(), sorted({*place.files(), "shop.db.lock"})
        with mounted_disk() as disk:
            disk.fail("write", apsw.FullError, suffix="shop.db.partial", times=1_000)
            with pytest.raises(OperatorError, match="nothing was restored"):
                place.restore()
        assert (place.path.read_bytes(), place.files()) == before

    def test_no_room_for_what_it_notes(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """It notes the end of sessions in the copy, before that takes the place of what can't be read."""
        place.path.write_bytes(b"no database at all, " * 500)
        before = place.path.read_bytes(), sorted({*place.files(), "shop.db.lock"})
        monkeypatch.setattr(upkeep, "run", Mock(side_effect=apsw.FullError))
        with pytest.raises(OperatorError, match="nothing was restored"):
            place.restore()
        assert (place.path.read_bytes(), place.files()) == before

    @pytest.mark.parametrize(
        ("file", "writes"),
        [("-wal", 0), ("-wal", 1), ("-wal", 7), ("-wal", 20), (".partial", 3), (".before-restore", 3)],
    )
    def test_the_process_is_killed(self, place: Place, file: str, writes: int) -> None:
        """A restore that is killed after `writes` writes to the log or a copy loses nothing: the next one to
        open it finds all that was there, and the next restore leaves no unfinished copy."""

        def die() -> None:
            left = writes

            def count(operation: str, path: str, _offset: int, _data: bytes) -> None:
                nonlocal left
                if operation == "write" and Path(path).name.startswith(f"shop.db{file}"):
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left -= 1

            with mounted_disk() as disk:
                disk.before = count
                place.restore()

        process = multiprocessing.get_context("fork").Process(target=die)
        process.start()
        process.join(20)
        assert process.exitcode == -signal.SIGKILL
        assert place.names() == LATER
        place.clock.advance(1)
        place.restore()
        assert place.names() == BACKED_UP
        assert not list(place.path.parent.glob("*.partial*"))


async def test_sessions_and_links_of_a_backup_are_over(tmp_path: Path) -> None:
    """What was ended since the backup does not come back: people sign in anew, with their passwords."""
    clock = ManualClock()
    path, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    backend = backend_for(f"sqlite:///{path}")
    store = backend.open(clock)
    anna = await store.people.add("anna", Role.OPERATOR, ACTOR)
    session = await store.sign_ins.redeem(anna.token, "hash", "192.0.2.7")
    ben = await store.people.add("ben", Role.STAFF, ACTOR)
    upkeep.backup(str(path), str(copy), 1_000)
    assert await store.sign_ins.session(session) is not None
    await store.close()
    upkeep.restore(str(path), str(copy), ACTOR, clock, 1_000)
    restored = backend.open(clock)
    assert await restored.sign_ins.session(session) is None
    with pytest.raises(LinkGone):
        await restored.sign_ins.link(ben.token)
    assert (await restored.sign_ins.take_attempt("anna", "192.0.2.7")).stored == "hash"
    await restored.close()
