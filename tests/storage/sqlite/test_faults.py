"""A disk that fails or is full: only StoreUnavailable comes out, and the store recovers."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from petstore.core.errors import ConfigurationError, OutcomeUnknown, StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.plans import FREE
from petstore.core.people import Role
from petstore.core.pets import NewPet, PetQuery
from petstore.ops import flusher
from petstore.storage.backend import backend_for
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite import reserve
from petstore.storage.sqlite.connection import translate
from petstore.storage.sqlite.store import SqliteStore
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.disk import Disk, mounted_disk
from tests.support.journal import ACTOR
from tests.support.service import open_shop
from tests.support.waiting import until

REX = NewPet("Rex", 1)
OUTCOME_UNKNOWN = (
    "The store failed: reading or writing the disk failed; whether this write was kept is unknown."
    " Look before repeating it, or retry with the same Idempotency-Key."
)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with mounted_disk() as mounted:
        yield mounted


@pytest.fixture
async def store(disk: Disk, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """Make a store on the watched disk, with an account and one animal."""
    opened = SqliteStore(f"{tmp_path}/faults.db", clock, SqliteOptions(busy_timeout_ms=10))
    await opened.accounts.add("shop", FREE, ACTOR)
    await opened.pets.add(REX, ACTOR)
    yield opened
    disk.heal()
    disk.read_only = False
    await opened.close()


async def names(store: Store) -> list[str]:
    return [pet.name for pet in (await store.pets.page(PetQuery(limit=100))).pets]


class TestCommit:
    """The disk fails while a group is being made durable."""

    @pytest.mark.parametrize("operation", ["sync", "write"])
    async def test_the_outcome_is_said_to_be_unknown(self, disk: Disk, store: Store, operation: str) -> None:
        """The failed write is not shown; later writes work, and so does a retry with the same key."""
        key = IdempotencyKey(1, "order-1")
        disk.fail(operation, suffix="-wal")  # type: ignore[arg-type]
        with pytest.raises(OutcomeUnknown, match=OUTCOME_UNKNOWN):
            await store.pets.add(NewPet("lost", 2), ACTOR, key)
        assert await names(store) == ["Rex"]
        disk.heal()
        assert (await store.pets.add(NewPet("Tom", 2), ACTOR)).pet.id == 2
        retried = await store.pets.add(NewPet("lost", 2), ACTOR, key)
        assert (retried.pet.id, retried.replayed) == (3, False)
        assert await names(store) == ["Rex", "Tom", "lost"]

    @pytest.mark.parametrize("pages", [1, 2, 3, 5])
    async def test_without_room_for_the_commit_nothing_is_stored_and_that_is_said(
        self, disk: Disk, store: Store, tmp_path: Path, pages: int
    ) -> None:
        """Whichever write of the log finds the disk full; also after the machine dies with that log."""
        left = pages

        def fill(operation: str, path: str, _offset: int, _data: bytes) -> None:
            nonlocal left
            if operation == "write" and path.endswith("-wal"):
                left -= 1
                if left < 0:
                    raise apsw.FullError("the disk of this test is full")

        disk.before = fill
        with pytest.raises(StoreUnavailable, match="identifiers, is full; nothing was stored"):
            await store.pets.add(NewPet("lost", 2), ACTOR)
        assert await names(store) == ["Rex"]
        disk.heal()
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"faults.db{suffix}", tmp_path / f"died.db{suffix}")
        started_again = backend_for(f"sqlite:///{tmp_path}/died.db").open(ManualClock())
        assert await names(started_again) == ["Rex"]
        await started_again.close()
        assert (await store.pets.add(NewPet("Tom", 2), ACTOR)).pet.id == 2

    async def test_a_failure_reaches_every_waiter_of_its_group(self, disk: Disk, store: Store) -> None:
        """A failure reaches every waiter of its group: no one gets a success or is left without an answer."""
        disk.fail("sync", suffix="-wal", times=1_000)
        results = await asyncio.gather(
            *(store.pets.add(REX, ACTOR) for _ in range(20)), return_exceptions=True
        )
        assert all(isinstance(result, StoreUnavailable) for result in results)
        disk.heal()
        assert await names(store) == ["Rex"]

    async def test_one_job_without_room_does_not_take_its_group_with_it(self, store: SqliteStore) -> None:
        """A job that needs a page more fails; the small ones around it are kept or fail as a whole."""
        pages = await store.writer.submit(lambda connection: connection.execute("PRAGMA page_count").get)
        await store.writer.submit(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}"))
        added = [store.pets.add(NewPet("🐕" * 255, n), ACTOR) for n in range(60)]
        results = await asyncio.gather(*added, return_exceptions=True)
        answered = {result.pet.id for result in results if not isinstance(result, BaseException)}
        assert all(
            isinstance(result, StoreUnavailable) for result in results if isinstance(result, BaseException)
        )
        page = await store.pets.page(PetQuery(limit=100))
        assert {pet.id for pet in page.pets} == {1, *answered}
        assert len(answered) < 60


class TestReserve:
    """A full disk can't keep a leaked key alive: the reserve beside the database makes room for that."""

    @pytest.fixture
    async def full(
        self, disk: Disk, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[Store]:
        """A store with a key and a session, without room for SQLite's log as long as the reserve is there."""
        path = str(tmp_path / "full.db")
        give_up = reserve.give_up

        def give_up_unshared(path: str) -> bool:
            with pytest.raises(apsw.BusyError):  # whoever could write now would take the room
                apsw.Connection(path).execute("BEGIN IMMEDIATE")
            return give_up(path)

        monkeypatch.setattr(reserve, "give_up", give_up_unshared)
        opened = backend_for(f"sqlite:///{path}").open(clock)
        await opened.accounts.add("shop", FREE, ACTOR)
        await opened.keys.issue("shop", "test", ACTOR)
        anna = await opened.people.add("anna", Role.STAFF, ACTOR)
        await opened.sign_ins.redeem(anna.token, "hash", "192.0.2.7")
        reserve.keep(path)

        def write(operation: str, name: str, _offset: int, _data: bytes) -> None:
            if operation == "write" and name.endswith("-wal") and reserve.is_kept(path):
                raise apsw.FullError("no room")

        disk.before = write
        yield opened
        disk.heal()
        await opened.close()

    @pytest.mark.parametrize("change", ["revoke", "suspend", "close", "disable", "reset", "end"])
    async def test_who_loses_access_uses_it(self, full: Store, tmp_path: Path, change: str) -> None:
        """A key, an account, a person, and all of their sessions. Others can't have taken the room meanwhile,
        since they can't write."""
        assert reserve.is_kept(str(tmp_path / "full.db"))
        if change == "revoke":
            assert (await full.keys.revoke(1, ACTOR)).revoked_at_ms is not None
        elif change in ("suspend", "close"):
            await getattr(full.accounts, change)("shop", ACTOR)
            assert (await full.accounts.find("shop")).state != "active"
        elif change == "end":
            await full.sign_ins.end_sessions(await full.people.find("anna"), ACTOR)
        else:
            await getattr(full.people, change)("anna", ACTOR)
        assert (await full.sign_ins.sessions(9) == []) is (change in ("disable", "reset", "end"))
        assert not reserve.is_kept(str(tmp_path / "full.db"))

    async def test_nothing_else_does(self, full: Store, tmp_path: Path) -> None:
        """A new key can wait."""
        with pytest.raises(StoreUnavailable, match="is full; nothing was stored"):
            await full.keys.issue("shop", "test", ACTOR)
        assert reserve.is_kept(str(tmp_path / "full.db"))

    async def test_without_one_the_revocation_fails_and_says_so(self, full: Store, disk: Disk) -> None:
        """It is not repeated for ever."""
        disk.fail("write", apsw.FullError, suffix="-wal", times=10**9)
        with pytest.raises(StoreUnavailable, match="is full; nothing was stored"):
            await full.keys.revoke(1, ACTOR)

    def test_a_place_that_can_not_be_written_is_no_failure(self, tmp_path: Path) -> None:
        """There is no reserve where it can't be made, nor what has its name be removed."""
        path = str(tmp_path / "some.db")
        (tmp_path / "some.db.reserve").mkdir()
        reserve.keep(path)
        assert not reserve.is_kept(path)

    def test_it_is_not_what_fills_the_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is made where eight times its size is free, and all of it, for its owner alone."""
        path = tmp_path / "some.db"
        real = os.statvfs(tmp_path)
        free = 8 * reserve.BYTES // real.f_frsize

        def statvfs(_path: object) -> SimpleNamespace:
            return SimpleNamespace(f_bavail=free, f_frsize=real.f_frsize)

        monkeypatch.setattr(os, "statvfs", statvfs)
        free -= 1
        reserve.keep(str(path))
        assert list(tmp_path.iterdir()) == []
        free += 1
        reserve.keep(str(path))
        (made,) = tmp_path.iterdir()
        assert (made.name, made.stat().st_mode & 0o777) == ("some.db.reserve", 0o600)
        assert made.stat().st_blocks * 512 >= reserve.BYTES


@pytest.mark.parametrize(
    "url", ["", "petstore.db", "sqlite://petstore.db", "sqlite:///", "sqlite:///a.db?mode=ro", "mysql:///a"]
)
def test_a_url_of_no_known_kind_is_a_mistake_of_the_settings(url: str) -> None:
    """Said with what to write, and without repeating what may hold a password."""
    with pytest.raises(ConfigurationError, match="write sqlite:///petstore"):
        backend_for(url).open(ManualClock())


class TestTranslation:
    """The driver's errors in our words."""

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            (apsw.BusyError("x"), "busy with other writes"),
            (apsw.LockedError("x"), "busy with other writes"),
            (apsw.FullError("x"), "is full"),
            (apsw.ReadOnlyError("x"), "read-only"),
            (apsw.CantOpenError("x"), "can't be opened"),
            (apsw.CorruptError("x"), "damaged"),
            (apsw.NotADBError("x"), "not a database"),
            (apsw.IOError("x"), "reading or writing the disk failed"),
            (apsw.SQLError("near 'secret'"), "could not carry out"),
        ],
    )
    def test_each_kind_has_its_words(self, error: apsw.Error, words: str) -> None:
        """Never the driver's text, which may quote data."""
        translated = translate(error)
        assert isinstance(translated, StoreUnavailable)
        assert words in translated.message
        assert "secret" not in translated.message

    def test_other_errors_pass(self) -> None:
        """A mistake of ours is not an outage."""
        error = ZeroDivisionError()
        assert translate(error) is error


async def test_readiness_follows_the_saving_of_counters(
    tmp_path: Path, clock: ManualClock, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads go on while the disk is full, but who can't save for 10 s is not ready, until it can again."""
    monkeypatch.setattr(flusher, "INTERVAL_SECONDS", 0.001)
    async with open_shop(tmp_path, clock) as shop:
        running = shop.application.service.flusher

        async def ready() -> bool:
            answer = await shop.call("GET", "/readyz")
            assert (answer.status == 200) is (answer.json()["checks"]["saving"] == "ok")
            return answer.status == 200

        await until(lambda: running._saved_at is not None)
        disk.fail("write", apsw.FullError, suffix="-wal", times=10**9)
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        await until(lambda: bool(running._reason))
        assert await ready()
        clock.advance(9)
        assert await ready()
        clock.advance(1)
        assert not await ready()
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        disk.heal()
        await until(lambda: not running._reason)
        assert await ready()


async def test_a_disk_that_hangs_is_noticed_as_well(
    tmp_path: Path, clock: ManualClock, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives no reason, only no answer."""
    monkeypatch.setattr(flusher, "INTERVAL_SECONDS", 0.001)
    at_the_disk, go_on = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        at_the_disk.set()
        go_on.wait(20)

    async with open_shop(tmp_path, clock) as shop:
        await until(lambda: shop.application.service.flusher._saved_at is not None)
        disk.before = hang
        await shop.ask("GET", "/v1/pets")
        await until(at_the_disk.is_set)
        clock.advance(10)
        answer = await shop.call("GET", "/readyz")
        go_on.set()
        disk.heal()
        assert (answer.status, answer.json()["checks"]["saving"]) == (
            503,
            "not for 10 s: the disk or the server does not answer.",
        )


async def test_a_service_that_starts_without_room_is_not_ready(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not from the first round on, also when there is nothing to save yet."""
    monkeypatch.setattr(flusher, "INTERVAL_SECONDS", 0.001)
    async with open_shop(tmp_path) as shop:
        disk.fail("write", apsw.FullError, suffix="-wal", times=10**9)
        await shop.restart()
        running = shop.application.service.flusher
        await until(lambda: bool(running._reason))
        answer = await shop.call("GET", "/readyz")
        assert answer.status == 503
        assert "not since the start: The store failed: the disk" in answer.json()["checks"]["saving"]
        disk.heal()
        await until(lambda: not running._reason)
        assert (await shop.call("GET", "/readyz")).status == 200
