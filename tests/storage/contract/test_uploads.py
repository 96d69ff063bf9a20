"""Uploads of stock lists, for every store: what a check and a store do, once, whoever works on it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from petstore.core import uploads
from petstore.core.durations import DAY_MS, MINUTE_MS
from petstore.core.errors import Conflict, StoreUnavailable, UploadNotFound
from petstore.core.pets import NewPet, PageQuery, PetChange
from petstore.core.uploads import NewUpload, PartKind, Upload, UploadRun, UploadState, pack, unpack
from petstore.storage.backend import Store
from petstore.wiring import import_process
from petstore.wiring.import_process import UploadWork
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import entries

ANNA, OTTO = "console:anna", "console:otto"
CHECKING, STORING = UploadState.CHECKING, UploadState.STORING
LIST = b"sku,name,categoryId,status\r\nA,Rex,1,\r\nB,Mia,1,sold\r\n"


async def send(
    store: Store, content: bytes = LIST, *, form: str = "csv", key_name: str | None = "sku", actor: str = ANNA
) -> int:
    """A list as the console takes it, in two parts."""
    upload_id = await store.uploads.begin(NewUpload("stock.csv", form, key_name), actor)
    half = len(content) // 2
    for number, piece in enumerate((content[:half], content[half:])):
        await store.uploads.add_part(upload_id, PartKind.LIST, number, pack(piece))
    await store.uploads.arrived(upload_id, len(content))
    return upload_id


async def work(store: Store, upload_id: int, step: UploadState, actor: str = ANNA) -> Upload:
    """Claim it and carry it out, as a process of its own does."""
    seen = (await store.uploads.find(upload_id)).run
    run = await store.uploads.claim(upload_id, step, actor, seen=seen)
    await UploadWork(store, run, actor).carry_out()
    return await store.uploads.find(upload_id)


async def names(store: Store) -> list[str]:
    return [pet.name for pet in (await store.pets.page(PageQuery(100))).pets]


def counted(upload: Upload) -> tuple[int, ...]:
    """Read, added, changed, unchanged, rejected."""
    assert upload.counts is not None
    counts = upload.counts
    return counts.read, counts.added, counts.changed, counts.unchanged, counts.rejected


async def parts(store: Store, upload_id: int, kind: PartKind) -> bytes:
    return b"".join([unpack(part) async for part in store.uploads.parts(upload_id, kind)])


class TestCheck:
    async def test_nothing_is_stored(self, store: Store, backend: SharedData) -> None:
        """A check says what storing would do, and changes no animal and no entry of the journal."""
        await store.pets.add(NewPet("Old", 1), ANNA)
        before = backend.execute("SELECT count(*) FROM journal")
        upload = await work(store, await send(store), CHECKING)
        assert (upload.state, counted(upload), upload.faults) == (UploadState.CHECKED, (2, 2, 0, 0, 0), [])
        assert await names(store) == ["Old"]
        assert backend.execute("SELECT count(*) FROM journal") == before

    @pytest.mark.parametrize(
        ("form", "content", "rejects"),
        [
            ("csv", LIST + b"C,=1+1,x,\r\n", b'faults,sku,name,categoryId,status\r\n"line 4: category'),
            (
                "jsonl",
                b'{"sku":"A","name":"Rex","categoryId":1}\n{"sku":"B","name":7,"categoryId":1}\n{"sku":"C","name":"x","categoryId":1}\n',
                b"# line 2: name",
            ),
        ],
    )
    async def test_bad_rows(self, store: Store, form: str, content: bytes, rejects: bytes) -> None:
        """Each is told with its line, its fault and how it stands; all are kept in the list's own format."""
        upload_id = await send(store, content, form=form)
        upload = await work(store, upload_id, CHECKING)
        assert counted(upload) == (3, 2, 0, 0, 1)
        (fault,) = upload.faults
        assert (fault.line, "expected" in fault.fault.lower()) == ((4 if form == "csv" else 2), True)
        assert ("'=1+1" if form == "csv" else '"name":7') in fault.row
        assert (await parts(store, upload_id, PartKind.REJECTS)).startswith(rejects)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "The list is empty"),
            (b"\xff\xfen\x00", "UTF-16"),
            (b"name,categoryId,colour\r\n", "a column without a meaning"),
            (b"sku,name,categoryId\r\nA,\xff,1\r\n", "Line 2 is not UTF-8"),
        ],
    )
    async def test_a_list_that_can_not_be_read(self, store: Store, content: bytes, message: str) -> None:
        """It is refused with the reason, and can't be stored."""
        upload = await work(store, await send(store, content), CHECKING)
        assert (upload.state, message in upload.message) == (UploadState.REFUSED, True)
        with pytest.raises(Conflict):
            await store.uploads.claim(upload.id, STORING, ANNA, seen=upload.run)

    async def test_again_after_a_change(self, store: Store) -> None:
        """A second check has the state of its own moment, and its rejects replace the first one's."""
        pet = (await store.pets.add(NewPet("Rex", 1), ANNA)).pet
        await work(store, await send(store), CHECKING)
        upload_id = await send(store, LIST + b"A,Twice,1,\r\n")
        assert counted(await work(store, upload_id, CHECKING)) == (3, 1, 0, 0, 2)
        await store.pets.remove(pet.id, ANNA)
        assert counted(await work(store, upload_id, CHECKING)) == (3, 1, 0, 0, 2)
        assert (await parts(store, upload_id, PartKind.REJECTS)).count(b"line") == 4


class TestStore:
    async def test_the_good_rows_are_stored_once(self, store: Store) -> None:
        """By whoever pressed the button; the list is forgotten then, its report and its rejects stay."""
        upload_id = await send(store, LIST + b"C,x,\r\n")
        await work(store, upload_id, CHECKING)
        upload = await work(store, upload_id, STORING, OTTO)
        assert (upload.state, counted(upload)) == (UploadState.STORED, (3, 2, 0, 0, 1))
        assert await names(store) == ["Rex", "Mia"]
        assert [entry.actor for entry in await entries(store)] == [OTTO, OTTO]
        assert await parts(store, upload_id, PartKind.LIST) == b""
        assert b"Expected 4 cells" in await parts(store, upload_id, PartKind.REJECTS)
        with pytest.raises(Conflict, match="stored already"):
            await store.uploads.claim(upload_id, STORING, ANNA, seen=upload.run)

    async def test_two_who_store_at_once(self, store: Store, backend: SharedData) -> None:
        """One of two clicks begins, also on two processes; without source keys it would add all twice."""
        upload_id = await send(store, b"name,categoryId\r\nRex,1\r\n", key_name=None)
        seen = (await work(store, upload_id, CHECKING)).run
        claims = await asyncio.gather(
            *(each.uploads.claim(upload_id, STORING, ANNA, seen=seen) for each in (store, backend.open())),
            return_exceptions=True,
        )
        (run,) = [claim for claim in claims if isinstance(claim, UploadRun)]
        assert [str(claim) for claim in claims if isinstance(claim, Conflict)] == [
            "This list is storing already."
        ]
        await UploadWork(store, run, ANNA).carry_out()
        assert await names(store) == ["Rex"]

    async def test_a_process_that_was_taken_for_dead(self, store: Store, clock: ManualClock) -> None:
        """Another one stores in its place; when it goes on, its own transaction stores nothing."""
        upload_id = await send(store, b"name,categoryId\r\nRex,1\r\n", key_name=None)
        seen = (await work(store, upload_id, CHECKING)).run
        frozen = await store.uploads.claim(upload_id, STORING, ANNA, seen=seen)
        clock.advance(2 * MINUTE_MS / 1_000)
        assert (await store.uploads.find(upload_id)).is_interrupted(clock.now_ms())
        other = await store.uploads.claim(upload_id, STORING, ANNA, seen=frozen.run)
        before = await store.uploads.find(upload_id)
        assert not await store.uploads.beat(frozen, 1)
        assert not await store.uploads.end(frozen, UploadState.CHECKED)
        assert await store.uploads.find(upload_id) == before
        await UploadWork(store, other, ANNA).carry_out()
        assert (await store.uploads.find(upload_id)).state is UploadState.STORED
        async with store.stock.importing(ANNA, None, frozen) as load:
            await load.plan()
            with pytest.raises(Conflict, match="nothing was stored"):
                await load.store()
        assert not await store.uploads.beat(frozen, 1)
        assert not await store.uploads.end(frozen, UploadState.CHECKED)
        assert await names(store) == ["Rex"]

    async def test_animals_that_were_changed_after_the_check(self, store: Store) -> None:
        """What was agreed to is stored, or nothing: the new report is shown, and can be agreed to."""
        await work(store, (first := await send(store)), CHECKING)
        await work(store, first, STORING)
        upload_id = await send(store, LIST.replace(b"Rex", b"Max"))
        assert counted(await work(store, upload_id, CHECKING)) == (2, 0, 1, 1, 0)
        (rex, _) = (await store.pets.page(PageQuery(2))).pets
        await store.pets.change(rex.id, PetChange(name="Max"), OTTO)
        upload = await work(store, upload_id, STORING)
        assert (upload.state, upload.message) == (UploadState.CHECKED, uploads.CHANGED)
        assert counted(upload) == (2, 0, 0, 2, 0)
        assert (await work(store, upload_id, STORING)).state is UploadState.STORED

    async def test_an_old_report(self, store: Store) -> None:
        """Who agrees to a report that a later check has replaced is told to look again."""
        upload_id = await send(store)
        old = (await work(store, upload_id, CHECKING)).run
        await work(store, upload_id, CHECKING)
        with pytest.raises(Conflict, match="Look at the new report"):
            await store.uploads.claim(upload_id, STORING, ANNA, seen=old)

    async def test_a_stop_and_an_outage(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """The list is as it was before the step, with the reason; nothing was stored."""
        upload_id = await send(store)
        seen = (await work(store, upload_id, CHECKING)).run

        def failing(error: BaseException) -> Any:
            async def stage_rows(*_: object) -> None:
                raise error

            return stage_rows

        monkeypatch.setattr(
            import_process, "stage_rows", failing(StoreUnavailable("down", public="It is down."))
        )
        upload = await work(store, upload_id, STORING)
        assert (upload.state, upload.message) == (UploadState.CHECKED, "It is down.")
        monkeypatch.setattr(import_process, "stage_rows", failing(asyncio.CancelledError()))
        upload = await work(store, upload_id, STORING)
        assert (upload.state, upload.message) == (UploadState.CHECKED, uploads.STOPPED)
        monkeypatch.setattr(import_process, "stage_rows", failing(ZeroDivisionError()))
        with pytest.raises(ZeroDivisionError):
            await work(store, upload_id, CHECKING)
        upload = await store.uploads.find(upload_id)
        assert (upload.state, upload.message) == (UploadState.WAITING, uploads.BROKEN)
        assert seen != upload.run
        assert await names(store) == []


class TestRoom:
    async def test_one_is_worked_on_at_a_time(self, store: Store) -> None:
        """Who begins another is told whose it is."""
        first, second = await send(store), await send(store)
        await store.uploads.claim(first, CHECKING, OTTO)
        with pytest.raises(Conflict, match="console:otto is checking the list"):
            await store.uploads.claim(second, CHECKING, ANNA)
        with pytest.raises(Conflict, match="being worked on"):
            await store.uploads.discard(first)

    async def test_a_person_has_five_at_most(self, store: Store) -> None:
        """Lists that are discarded or stored do not count, and are forgotten."""
        sent = [await send(store) for _ in range(uploads.OPEN_FOR_A_PERSON)]
        with pytest.raises(Conflict, match="You have 5 lists"):
            await send(store)
        await send(store, actor=OTTO)
        await store.uploads.discard(sent[0])
        assert await parts(store, sent[0], PartKind.LIST) == b""
        await send(store)
        assert [each.state for each in await store.uploads.recent()][-1] is UploadState.DISCARDED

    async def test_a_person_has_half_of_the_room(self, store: Store) -> None:
        """However slowly their lists arrive, others can send theirs; one counts as it was announced."""
        large = NewUpload("x.csv", "csv", None)
        for _ in range(2):
            await store.uploads.begin(large, ANNA)
        with pytest.raises(Conflict, match="take 128 MiB, and a person may have 128"):
            await store.uploads.begin(NewUpload("x.csv", "csv", None, 1), ANNA)
        for _ in range(4):
            await store.uploads.begin(NewUpload("x.csv", "csv", None, 1), OTTO)
        await store.uploads.begin(large, OTTO)

    async def test_all_together_have_a_bound(self, store: Store, clock: ManualClock) -> None:
        """What arrives counts as the largest, until it is there or too late."""
        for person in range(uploads.ALL_BYTES_MAX // uploads.UPLOAD_BYTES_MAX):
            await store.uploads.begin(NewUpload("x", "csv", None), f"console:{person}")
        with pytest.raises(Conflict, match="256 MiB"):
            await send(store)
        assert await store.uploads.recent() == []
        clock.advance(uploads.ARRIVAL_MS / 1_000)
        await send(store)


class TestTurns:
    async def test_the_one_that_waits_longest_is_next(self, store: Store, backend: SharedData) -> None:
        """By itself, once, for whoever sent it, and after the one before it; on each of two processes."""
        first, second = await send(store), await send(store, actor=OTTO)
        stores = store, backend.open()
        turns = []
        for _ in range(3):
            claims = await asyncio.gather(*(each.uploads.claim_next() for each in stores * 2))
            found = [claim for claim in claims if claim is not None]
            for claim in found:
                await UploadWork(store, claim.run, claim.actor).carry_out()
            turns.append([(claim.run.upload_id, claim.actor) for claim in found])
        assert turns == [[(first, ANNA)], [(second, OTTO)], []]

    async def test_one_that_came_to_nothing_is_left_alone(self, store: Store) -> None:
        """A list on which the work fails is not tried for ever; somebody says when."""
        run = await store.uploads.claim(await send(store), CHECKING, ANNA)
        await store.uploads.end(run, UploadState.WAITING, uploads.BROKEN)
        assert await store.uploads.claim_next() is None


class TestPurge:
    async def test_what_stopped_arriving(self, store: Store, backend: SharedData, clock: ManualClock) -> None:
        """Is gone with its parts after the ten minutes that a list may take; one that has arrived stays."""
        whole = await send(store)
        lost = await store.uploads.begin(NewUpload("lost.csv", "csv", None), ANNA)
        await store.uploads.add_part(lost, PartKind.LIST, 0, pack(LIST))
        kept = []
        for waited_ms in (uploads.ARRIVAL_MS - 1, 2):
            clock.advance(waited_ms / 1_000)
            await store.purge(clock.now_ms())
            kept.append({row for (row,) in backend.execute("SELECT upload_id FROM stock_upload_parts")})
        assert kept == [{whole, lost}, {whole}]
        assert backend.execute("SELECT id FROM stock_uploads") == [(whole,)]

    async def test_after_24_hours(self, store: Store, backend: SharedData, clock: ManualClock) -> None:
        """The list, its parts and its report are gone, whatever has become of them; younger ones stay."""
        old = await send(store)
        await store.uploads.begin(NewUpload("lost.csv", "csv", None), ANNA)
        clock.advance(DAY_MS / 1_000 - 1)
        young = await send(store)
        await store.purge(clock.now_ms())
        assert [each.id for each in await store.uploads.recent()] == [young, old]
        clock.advance(1)
        await store.purge(clock.now_ms())
        with pytest.raises(UploadNotFound, match="kept for 24 hours"):
            await store.uploads.find(old)
        assert backend.execute("SELECT DISTINCT upload_id FROM stock_upload_parts") == [(young,)]
        assert backend.execute("SELECT id FROM stock_uploads") == [(young,)]
