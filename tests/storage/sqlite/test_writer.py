"""The one writer: groups, a bounded queue, an orderly end."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.core.clock import SystemClock
from petstore.core.errors import Conflict, StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, PetStatus
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite.connection import LOG_KEPT_BYTES, open_writer
from petstore.storage.sqlite.schema import migrate
from petstore.storage.sqlite.store import SqliteStore
from petstore.storage.sqlite.writer import Writer
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.waiting import until

INSERT = "INSERT INTO pets (name, category_id, status) VALUES (?, 1, 'sold')"


def refused(_thread: threading.Thread) -> None:
    """Refuse a thread as the system does."""
    raise RuntimeError("can't start new thread")


class Groups:
    """How many jobs each commit had."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def committed(self, jobs: int, seconds: float) -> None:
        self.sizes.append(jobs)


class Bench:
    """A database with a writer, an outside connection that can hold the lock, and the groups seen."""

    def __init__(self, folder: Path, *, capacity: int = 1_000, busy_timeout_ms: int = 20_000) -> None:
        self.path = str(folder / "writer.db")
        migrate(self.path, 1_000)
        self.groups = Groups()
        self.connection = open_writer(self.path, busy_timeout_ms)
        self.writer = Writer(self.connection, ManualClock(), capacity, self.groups.committed)
        self.outside = apsw.Connection(self.path)

    def names(self) -> list[str]:
        return [row[0] for row in self.outside.execute("SELECT name FROM pets ORDER BY id")]

    def lock(self) -> None:
        """Another process begins to write."""
        self.outside.execute("BEGIN IMMEDIATE")

    def unlock(self) -> None:
        self.outside.execute("ROLLBACK")

    def submit(self, job: Callable[[apsw.Connection], Any]) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.writer.submit(job))

    async def in_one_group(self, *jobs: Callable[[apsw.Connection], Any]) -> list[Any]:
        """Results, or errors, of jobs that are committed together: they wait while another one is slow."""
        inside, go_on = threading.Event(), threading.Event()

        def slow(_connection: apsw.Connection) -> None:
            inside.set()
            go_on.wait(20)

        first = self.submit(slow)
        await until(inside.is_set)
        waiting = [self.submit(job) for job in jobs]
        await asyncio.sleep(0)
        go_on.set()
        await first
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    async def close(self) -> None:
        await self.writer.drain()
        self.outside.close()
        self.writer.close()


@pytest.fixture
async def bench(tmp_path: Path) -> Any:
    opened = Bench(tmp_path)
    yield opened
    await opened.close()


def add(name: str) -> Callable[[apsw.Connection], str]:
    """A job that adds an animal and returns its name."""

    def job(connection: apsw.Connection) -> str:
        connection.execute(INSERT, (name,))
        return name

    return job


def add_and_fail(name: str, error: Exception) -> Callable[[apsw.Connection], str]:
    """A job that adds an animal and then fails."""

    def job(connection: apsw.Connection) -> str:
        connection.execute(INSERT, (name,))
        raise error

    return job


class TestGroups:
    """Whatever waits is one transaction with a savepoint for each job."""

    async def test_no_other_process_writes_between_a_jobs_read_and_its_write(self, bench: Bench) -> None:
        """SQLite would refuse the write at once, whatever the timeout."""

        def job(connection: apsw.Connection) -> None:
            assert connection.execute("SELECT count(*) FROM pets").get == 0
            with suppress(apsw.BusyError):
                bench.outside.execute(INSERT, ("Mia",))
            connection.execute(INSERT, ("Rex",))

        await bench.submit(job)
        assert bench.names() == ["Rex"]

    async def test_a_failing_job_hurts_no_other(self, bench: Bench) -> None:
        """The part of the failing job is undone, the others are kept; each waiter has its own answer, of
        which only the driver's errors are translated. The writer's thread goes on."""

        def broken(connection: apsw.Connection) -> None:
            connection.execute("INSERT INTO pets (name) VALUES (NULL)")

        refused, bug = Conflict("no"), ZeroDivisionError("bug")
        failing = add_and_fail("b", refused), broken, add_and_fail("c", bug)
        first, *failed, last = await bench.in_one_group(add("a"), *failing, add("d"))
        assert (first, last, bench.names()) == ("a", "d", ["a", "d"])
        assert bench.groups.sizes[-1] == 5
        assert (failed[0], failed[2]) == (refused, bug)
        assert isinstance(failed[1], StoreUnavailable)
        assert "NOT NULL" not in failed[1].message
        assert await bench.submit(add("e")) == "e"

    async def test_a_group_has_at_most_256_jobs(self, bench: Bench) -> None:
        """Nobody waits for a heap of others: each has its own result, in their order."""
        names = [str(n) for n in range(600)]
        assert await bench.in_one_group(*map(add, names)) == names == bench.names()
        assert bench.groups.sizes[-3:] == [256, 256, 88]

    async def test_every_commit_waits_for_the_disk(self, bench: Bench) -> None:
        """WAL and synchronous=FULL on the connection that writes, whatever the file was before."""
        assert bench.connection.execute("PRAGMA journal_mode").get == "wal"
        assert bench.connection.execute("PRAGMA synchronous").get == 2
        assert bench.connection.execute("PRAGMA foreign_keys").get == 1

    def test_the_log_waits_for_a_reader_only_once(self, tmp_path: Path) -> None:
        """A file without a log, as a backup is, that another process reads: busy after one timeout."""
        path = str(tmp_path / "copy.db")
        with closing(apsw.Connection(path)) as reader:
            reader.execute("CREATE TABLE t (a); BEGIN; SELECT * FROM t")
            clock = SystemClock()
            began = clock.monotonic()
            with pytest.raises(StoreUnavailable, match="busy"):
                open_writer(path, 100)
            assert clock.monotonic() - began < 3

    def test_the_log_shrinks_after_a_reader_that_held_it(self, tmp_path: Path) -> None:
        """It grows while somebody reads, such as a backup; the space is free again soon after."""
        path, log = str(tmp_path / "shop.db"), tmp_path / "shop.db-wal"
        migrate(path, 1_000)
        with closing(open_writer(path, 1_000)) as writer, closing(apsw.Connection(path)) as backup:
            backup.execute("BEGIN; SELECT 1 FROM pets").fetchall()
            writer.execute("CREATE TABLE large AS SELECT zeroblob(?) AS content", (2 * LOG_KEPT_BYTES,))
            assert log.stat().st_size > 2 * LOG_KEPT_BYTES
            backup.execute("ROLLBACK")
            for _ in range(2):  # the first one moves the log into the file, the second begins it anew
                writer.execute(INSERT, ("Rex",))
            assert log.stat().st_size <= LOG_KEPT_BYTES


class TestQueue:
    """Bounded: past its length a write is refused at once, and nothing of it is stored."""

    async def test_a_full_queue_refuses(self, tmp_path: Path) -> None:
        """Two wait, the third is told; when they are through there is room again."""
        bench = Bench(tmp_path, capacity=2)
        bench.lock()
        waiting = [bench.submit(add("a")), bench.submit(add("b"))]
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match="Too many writes are waiting; nothing was stored"):
            await bench.writer.submit(add("c"))
        bench.unlock()
        await asyncio.gather(*waiting)
        await bench.writer.submit(add("d"))
        assert bench.names() == ["a", "b", "d"]
        await bench.close()

    async def test_a_thread_that_can_not_begin_is_tried_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full machine fails one write, like a store out of reach, and not all of them until a restart."""
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refused)
            with pytest.raises(StoreUnavailable, match="no further thread; nothing was stored"):
                await bench.submit(add("a"))
        async with asyncio.timeout(10):
            assert await bench.submit(add("b")) == "b"
        assert bench.names() == ["b"]

    @pytest.mark.parametrize("suffix", ["", "-wal"])
    async def test_nothing_is_stored_in_a_file_that_has_lost_its_name(
        self, bench: Bench, suffix: str
    ) -> None:
        """Writes would be answered and gone at the next start. They go on when the name is back."""
        await bench.submit(add("a"))
        file, away = f"{bench.path}{suffix}", f"{bench.path}.away"
        shutil.move(file, away)
        with pytest.raises(StoreUnavailable, match=r"removed or replaced .*; nothing was stored"):
            await bench.submit(add("b"))
        shutil.copy(away, file)
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await bench.submit(add("c"))
        shutil.move(away, file)
        await bench.submit(add("d"))
        assert bench.names() == ["a", "d"]

    async def test_its_end_needs_no_further_thread(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is stored is not reported as failed, such as a new key, which nobody would have then."""
        await bench.submit(add("a"))
        monkeypatch.setattr(threading.Thread, "start", refused)
        async with asyncio.timeout(10):
            await bench.writer.drain()
        assert bench.names() == ["a"]

    async def test_a_waiter_that_goes_away_frees_its_place_when_its_job_is_done(self, tmp_path: Path) -> None:
        """Cancelled requests neither undo what is on its way nor fill the queue for ever."""
        bench = Bench(tmp_path, capacity=3)
        for round_number in range(4):
            bench.lock()
            tasks = [bench.submit(add(f"{round_number}-{n}")) for n in range(3)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            bench.unlock()
            await until(lambda: bench.writer.waiting == 0)
        assert len(bench.names()) == 12
        await bench.close()


class TestEnd:
    """Closing carries out what was accepted and takes nothing more."""

    async def test_accepted_writes_are_carried_out(self, tmp_path: Path) -> None:
        """Fifty wait behind a lock when the end comes: all are stored and answered."""
        bench = Bench(tmp_path)
        bench.lock()
        tasks = [bench.submit(add(str(n))) for n in range(50)]
        await asyncio.sleep(0)
        draining = asyncio.create_task(bench.writer.drain())
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match="shutting down; nothing was stored"):
            await bench.writer.submit(add("late"))
        bench.unlock()
        await draining
        assert await asyncio.gather(*tasks) == [str(n) for n in range(50)] == bench.names()
        await bench.close()

    def test_after_a_clean_stop_the_database_is_one_file(self, tmp_path: Path) -> None:
        """No log beside it: whoever copies the file copies everything."""

        async def use() -> None:
            store = SqliteStore(str(tmp_path / "one.db"), ManualClock(), SqliteOptions(10, 1_000))
            await store.accounts.add("shop", FREE, ACTOR)
            await store.pets.add(NewPet("Rex", 1, PetStatus.SOLD), ACTOR)
            await store.close()
            await store.close()

        asyncio.run(use())
        assert [file.name for file in sorted(tmp_path.iterdir())] == ["one.db"]
        copied = apsw.Connection(str(tmp_path / "one.db"), flags=apsw.SQLITE_OPEN_READONLY)
        assert copied.execute("SELECT name FROM pets").get == "Rex"
        copied.close()
