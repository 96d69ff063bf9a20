"""Uploads of stock lists, for every store: what a check and a store do, once, for any number of processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from petstore.background import imports
from petstore.background.imports import Imports
from petstore.background.jobs import Progress
from petstore.core import uploads
from petstore.core.durations import DAY_MS, MINUTE_MS
from petstore.core.errors import Conflict, StoreUnavailable, UploadNotFound
from petstore.core.lists.importing import BadRows, plan_and_store
from petstore.core.pets import NewPet, PetChange, PetQuery
from petstore.core.stock import StockImport, StockPlan
from petstore.core.uploads import FileKind, Upload, UploadState, unpack
from petstore.storage.sqlite.stock import SqliteStock
from petstore.storage.store import Store
from petstore.transactions.jobs import LEASE_MS, Job
from petstore.transactions.uploads import IMPORT
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.jobs import carry_out, keep_list, work
from tests.support.journal import entries

ANNA, OTTO = "console:anna", "console:otto"
CHECKING, STORING = UploadState.CHECKING, UploadState.STORING
LIST = b"sku,name,categoryId,status\r\nA,Rex,1,\r\nB,Mia,1,sold\r\n"
REX = b"name,categoryId\r\nRex,1\r\n"  # without source keys: storing it twice would add it twice


async def send(
    store: Store, content: bytes = LIST, *, form: str = "csv", key_name: str | None = "sku", actor: str = ANNA
) -> int:
    """A list as the console keeps it, with a job."""
    return await keep_list(store, content, actor, form=form, key_name=key_name)


async def sent_and_checked(store: Store, content: bytes = LIST, **kind: Any) -> Upload:
    upload_id = await send(store, content, **kind)
    await carry_out(store)
    return await store.uploads.get(upload_id)


async def taken_to_store(store: Store) -> Job:
    """REX, agreed to, and the job of storing it as a process has taken it."""
    upload = await sent_and_checked(store, REX, key_name=None)
    await store.uploads.ask(upload.id, STORING, ANNA, expected_run=upload.run)
    job = await store.jobs.take(IMPORT)
    assert job is not None
    return job


async def storing_is_refused(store: Store, upload: Upload) -> None:
    """The transaction of a run that another one has replaced stores nothing."""
    async with store.stock.importing(ANNA, None, upload) as load:
        await load.plan()
        with pytest.raises(Conflict, match="nothing was stored"):
            await load.store()


async def names(store: Store) -> list[str]:
    return [pet.name for pet in (await store.pets.page(PetQuery(100))).pets]


def counted(upload: Upload) -> tuple[int, ...]:
    """Read, added, changed, unchanged, rejected."""
    assert upload.counts is not None
    counts = upload.counts
    return counts.read, counts.added, counts.changed, counts.unchanged, counts.rejected


async def content(store: Store, upload_id: int, kind: FileKind) -> bytes:
    return b"".join([unpack(chunk) async for chunk in store.uploads.chunks(upload_id, kind)])


async def test_what_is_said_of_columns(store: Store) -> None:
    """The last word counts, for every list with these headings; each is in the journal."""
    for meaning in ("name", "status"):
        await store.uploads.save_column_meanings("art\ntier", {"art": meaning, "tier": ""}, OTTO)
    assert await store.uploads.columns() == {"art\ntier": {"art": "status", "tier": ""}}
    said = await entries(store, "store")
    assert [(entry.actor, entry.type, entry.after) for entry in said] == [
        (OTTO, "store.columns_said", {"art": meaning}) for meaning in ("name", "status")
    ]


class TestCheck:
    async def test_nothing_is_stored(self, store: Store, backend: SharedData) -> None:
        """A check says what storing would do, and changes no animal: the journal says that it ended."""
        await store.pets.add(NewPet("Old", 1), ANNA)
        before = backend.execute("SELECT count(*) FROM journal WHERE subject = 'pet'")
        upload = await sent_and_checked(store)
        assert (upload.state, counted(upload), upload.faults) == (UploadState.CHECKED, (2, 2, 0, 0, 0), [])
        assert await names(store) == ["Old"]
        assert backend.execute("SELECT count(*) FROM journal WHERE subject = 'pet'") == before
        assert (await store.pets.add(NewPet("New", 1), ANNA)).pet.id == 2

    @pytest.mark.parametrize(
        ("form", "sent", "rejects"),
        [
            (
                "csv",
                LIST + b"C,=1+1,x,\r\n",
                b"faults,sku,name,categoryId,status\r\n\"line 4: 'x' is not a category",
            ),
            (
                "jsonl",
                b'{"sku":"A","name":"Rex","categoryId":1}\n{"sku":"B","name":7,"categoryId":1}\n{"sku":"C","name":"x","categoryId":1}\n',
                b"# line 2: name",
            ),
        ],
    )
    async def test_a_bad_row_is_told_with_line_and_fault_and_kept(
        self, store: Store, form: str, sent: bytes, rejects: bytes
    ) -> None:
        """All are kept in the list's own format."""
        upload = await sent_and_checked(store, sent, form=form)
        assert counted(upload) == (3, 2, 0, 0, 1)
        (fault,) = upload.faults
        assert (fault.line, "expected" in fault.fault.lower()) == ((4 if form == "csv" else 2), True)
        assert ("'=1+1" if form == "csv" else '"name":7') in fault.row
        assert (await content(store, upload.id, FileKind.REJECTS)).startswith(rejects)

    @every_case(
        ("sent", "message"),
        [
            (b"", "The list is empty"),
            (b"\xff\xfen\x00\x00\xd8n\x00", "UTF-16"),
            (b"%PDF-1.7", "This is a PDF"),
            (b"sku,name,categoryId\r\nA,\x81,1\r\n", "Line 2 is neither UTF-8"),
        ],
    )
    async def test_a_list_that_can_not_be_read(self, store: Store, sent: bytes, message: str) -> None:
        """It is refused with the reason, can't be stored, and takes no more room."""
        upload = await sent_and_checked(store, sent)
        assert (upload.state, message in upload.message) == (UploadState.REFUSED, True)
        assert await content(store, upload.id, FileKind.LIST) == b""
        with pytest.raises(Conflict):
            await store.uploads.ask(upload.id, STORING, ANNA, expected_run=upload.run)

    async def test_again_after_a_change(self, store: Store) -> None:
        """A second check has the state of its own moment, and its rejects replace the first one's."""
        pet = (await store.pets.add(NewPet("Rex", 1), ANNA)).pet
        await sent_and_checked(store)
        upload = await sent_and_checked(store, LIST + b"A,Twice,1,\r\n")
        assert counted(upload) == (3, 1, 0, 0, 2)
        upload_id = upload.id
        await store.pets.remove(pet.id, ANNA)
        assert counted(await work(store, upload_id, CHECKING, ANNA)) == (3, 1, 0, 0, 2)
        assert (await content(store, upload_id, FileKind.REJECTS)).count(b"line") == 4


class TestStore:
    async def test_the_good_rows_are_stored_once(self, store: Store) -> None:
        """Good rows are stored once, as the person who stores; the list goes, its report and rejects stay."""
        upload_id = (await sent_and_checked(store, LIST + b"C,x,\r\n")).id
        upload = await work(store, upload_id, STORING, OTTO)
        assert (upload.state, counted(upload)) == (UploadState.STORED, (3, 2, 0, 0, 1))
        assert await names(store) == ["Rex", "Mia"]
        *found, stored = await entries(store)
        assert [(entry.actor, entry.type) for entry in found if entry.subject == "pet"] == [
            (OTTO, "pet.added"),
            (OTTO, "pet.added"),
        ]
        assert (stored.actor, stored.type) == (OTTO, "store.list_finished")
        assert stored.after == {
            "list": upload.file,
            "upload": upload_id,
            "state": "stored",
            "message": "",
            "added": 2,
            "changed": 0,
            "rejected": 1,
        }
        assert await content(store, upload_id, FileKind.LIST) == b""
        assert b"Expected 4 cells" in await content(store, upload_id, FileKind.REJECTS)
        with pytest.raises(Conflict, match="stored already"):
            await store.uploads.ask(upload_id, STORING, ANNA, expected_run=upload.run)

    async def test_what_others_write_meanwhile_is_found_in_the_journal(self, store: Store) -> None:
        """Among the entries of its animals, which a page leaves out. Nobody writes meanwhile in SQLite."""
        await store.pets.add(NewPet("Mia", 1), OTTO)
        await work(store, (await sent_and_checked(store)).id, STORING, ANNA)
        finished = (await entries(store, "store"))[-1]
        assert await store.journal.beside(finished) == []
        one_more = replace(finished, after={**(finished.after or {}), "added": 4})
        is_alone = isinstance(store.stock, SqliteStock)
        assert [each.actor for each in await store.journal.beside(one_more)] == ([] if is_alone else [OTTO])

    @through_pgbouncer_too
    async def test_two_who_store_at_once(self, store: Store, backend: SharedData) -> None:
        """One of two clicks counts, also on two processes; without source keys it would add all twice."""
        upload = await sent_and_checked(store, REX, key_name=None)
        asked = await asyncio.gather(
            *(
                each.uploads.ask(upload.id, STORING, ANNA, expected_run=upload.run)
                for each in (store, backend.open())
            ),
            return_exceptions=True,
        )
        assert [str(one) for one in asked if one is not None] == ["This list is storing already."]
        await carry_out(store)
        assert await names(store) == ["Rex"]

    async def test_a_process_that_was_taken_for_dead(self, store: Store, clock: ManualClock) -> None:
        """Another one stores in its place; when it goes on, its own transaction stores nothing."""
        job = await taken_to_store(store)
        begun = await store.uploads.begin(job)
        assert begun is not None
        clock.advance(LEASE_MS / 1_000)
        other = await store.jobs.take(IMPORT)
        assert other is not None
        assert await store.uploads.begin(job) is None
        assert await store.uploads.begin(other) is not None
        before = await store.uploads.get(job.subject)
        assert not await store.jobs.renew(job, 1)
        await store.jobs.finish(job)
        assert not await store.uploads.end(begun, UploadState.CHECKED)
        assert await store.uploads.get(job.subject) == before
        await storing_is_refused(store, begun)
        clock.advance(LEASE_MS / 1_000)
        await carry_out(store)
        assert (await store.uploads.get(job.subject)).state is UploadState.STORED
        assert not await store.uploads.end(begun, UploadState.CHECKED)
        assert await names(store) == ["Rex"]

    async def test_a_process_that_died_after_it_stored(self, store: Store, clock: ManualClock) -> None:
        """The job is taken once more, and nothing is left to do."""
        job = await taken_to_store(store)
        await Imports(store).carry_out(job, Progress())
        clock.advance(LEASE_MS / 1_000)
        await carry_out(store)
        assert await names(store) == ["Rex"]
        assert await store.jobs.take(IMPORT) is None

    async def test_animals_that_were_changed_after_the_check(self, store: Store) -> None:
        """What was agreed to is stored, or nothing: the new report is shown, and can be agreed to."""
        await work(store, (await sent_and_checked(store)).id, STORING, ANNA)
        upload = await sent_and_checked(store, LIST.replace(b"Rex", b"Max"))
        assert counted(upload) == (2, 0, 1, 1, 0)
        upload_id = upload.id
        (rex, _) = (await store.pets.page(PetQuery(2))).pets
        await store.pets.change(rex.id, PetChange(name="Max"), OTTO)
        upload = await work(store, upload_id, STORING, ANNA)
        assert (upload.state, upload.message) == (UploadState.CHECKED, uploads.CHANGED)
        assert counted(upload) == (2, 0, 0, 2, 0)
        assert (await work(store, upload_id, STORING, ANNA)).state is UploadState.STORED

    async def test_an_animal_that_changes_before_it_is_stored(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is stored but what was agreed to, even if an animal changes after this very run's plan."""
        await work(store, (await sent_and_checked(store)).id, STORING, ANNA)
        upload = await sent_and_checked(store, LIST.replace(b"Rex", b"Max"))
        (rex, _) = (await store.pets.page(PetQuery(2))).pets

        async def change_and_store(load: StockImport, bad: BadRows, *, wants: Any) -> Any:
            make = load.plan

            async def plan(*, locked: bool = False) -> StockPlan:
                planned = await make(locked=locked)
                await store.pets.change(rex.id, PetChange(name="Max"), OTTO)
                return planned

            monkeypatch.setattr(load, "plan", plan)
            return await plan_and_store(load, bad, wants=wants)

        monkeypatch.setattr(imports, "plan_and_store", change_and_store)
        upload = await work(store, upload.id, STORING, ANNA)
        assert (upload.state, upload.message) == (UploadState.CHECKED, uploads.CHANGED)
        assert counted(upload) == (2, 0, 0, 2, 0)

    async def test_what_can_not_be_agreed_to(self, store: Store) -> None:
        """There is no report yet, or a later check has replaced the one that was seen."""
        upload_id = await send(store)
        with pytest.raises(Conflict, match="not checked yet"):
            await store.uploads.ask(upload_id, STORING, ANNA)
        await carry_out(store)
        seen = (await store.uploads.get(upload_id)).run
        await work(store, upload_id, CHECKING, ANNA)
        with pytest.raises(Conflict, match="Look at the new report"):
            await store.uploads.ask(upload_id, STORING, ANNA, expected_run=seen)

    async def test_an_outage_and_an_error(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """The list is as it was before the step, with the reason; nothing was stored."""
        upload_id = (await sent_and_checked(store)).id

        def failing(error: Exception) -> Any:
            async def stage_rows(*_: object) -> None:
                raise error

            return stage_rows

        monkeypatch.setattr(imports, "stage_rows", failing(StoreUnavailable("down", public="It is down.")))
        upload = await work(store, upload_id, STORING, ANNA)
        assert (upload.state, upload.message) == (UploadState.CHECKED, "It is down.")
        monkeypatch.setattr(imports, "stage_rows", failing(ZeroDivisionError()))
        upload = await work(store, upload_id, CHECKING, ANNA)
        assert (upload.state, upload.message) == (UploadState.WAITING, uploads.BROKEN)
        assert await names(store) == []


class TestRoom:
    async def test_what_is_worked_on_stays(self, store: Store) -> None:
        """A list that is about to be stored can't be discarded, nor checked."""
        upload = await sent_and_checked(store)
        await store.uploads.ask(upload.id, STORING, ANNA, expected_run=upload.run)
        with pytest.raises(Conflict, match="being worked on"):
            await store.uploads.discard(upload.id)
        with pytest.raises(Conflict, match="storing already"):
            await store.uploads.ask(upload.id, CHECKING, ANNA)

    async def test_a_person_has_five_at_most(self, store: Store, backend: SharedData) -> None:
        """Lists that are discarded or stored do not count; of a discarded one nothing is left to do."""
        sent = [await send(store) for _ in range(uploads.OPEN_FOR_A_PERSON)]
        with pytest.raises(Conflict, match="You have 5 lists"):
            await send(store)
        await send(store, actor=OTTO)
        await store.uploads.discard(sent[0])
        assert await content(store, sent[0], FileKind.LIST) == b""
        assert backend.execute(f"SELECT count(*) FROM jobs WHERE subject = {sent[0]}") == [(0,)]
        await send(store)
        assert [each.state for each in await store.uploads.recent()][-1] is UploadState.DISCARDED
        with pytest.raises(Conflict, match="discarded; send it again"):
            await store.uploads.ask(sent[0], CHECKING, ANNA)

    async def test_a_person_has_half_of_the_room(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """Others can send theirs, until all together reach the bound."""
        monkeypatch.setattr(uploads, "PERSON_BYTES_MAX", 2 * len(LIST))
        monkeypatch.setattr(uploads, "ALL_BYTES_MAX", 3 * len(LIST))
        for _ in range(2):
            await send(store)
        with pytest.raises(Conflict, match="and a person may have"):
            await send(store)
        await send(store, actor=OTTO)
        with pytest.raises(Conflict, match="Store or discard some first"):
            await send(store, actor=OTTO)


class TestNeighbours:
    """A program of 1.1.0 beside this one: it has no jobs, and notes every two seconds that it works."""

    async def take_over(self, backend: SharedData, upload_id: int, state: UploadState, at_ms: int) -> None:
        """Take the upload over as another process does."""
        backend.execute(
            f"UPDATE stock_uploads SET state = '{state}', run = 'theirs', beat_at_ms = {at_ms}"
            f" WHERE id = {upload_id}"
        )
        backend.execute("DELETE FROM jobs")

    @pytest.mark.parametrize("state", [UploadState.WAITING, CHECKING])
    async def test_what_it_left_is_checked(
        self, store: Store, backend: SharedData, clock: ManualClock, state: UploadState
    ) -> None:
        """What a process left is checked once that has been silent for a minute, and not while it works."""
        upload_id = await send(store)
        await self.take_over(backend, upload_id, state, clock.now_ms())
        clock.advance(MINUTE_MS / 1_000 - 1)
        await Imports(store).sweep()
        await carry_out(store)
        assert (await store.uploads.get(upload_id)).state is state
        clock.advance(1)
        await Imports(store).sweep()
        await carry_out(store)
        assert (await store.uploads.get(upload_id)).state is UploadState.CHECKED

    async def test_what_it_left_is_stored_once(
        self, store: Store, backend: SharedData, clock: ManualClock
    ) -> None:
        """When it goes on after all, it stores nothing."""
        upload = await sent_and_checked(store, REX, key_name=None)
        await self.take_over(backend, upload.id, STORING, clock.now_ms())
        clock.advance(MINUTE_MS / 1_000)
        await Imports(store).sweep()
        await carry_out(store)
        await storing_is_refused(store, replace(upload, run="theirs"))
        assert await names(store) == ["Rex"]


@through_pgbouncer_too
async def test_a_list_is_kept_for_24_hours(store: Store, backend: SharedData, clock: ManualClock) -> None:
    """The list, its parts and its report are gone then, whatever their outcome; younger ones stay."""
    old = await send(store)
    clock.advance(DAY_MS / 1_000 - 1)
    young = await send(store)
    await store.purge(clock.now_ms())
    assert [each.id for each in await store.uploads.recent()] == [young, old]
    clock.advance(1)
    await store.purge(clock.now_ms())
    with pytest.raises(UploadNotFound, match="kept for 24 hours"):
        await store.uploads.get(old)
    assert backend.execute("SELECT DISTINCT upload_id FROM stock_upload_parts") == [(young,)]
    assert backend.execute("SELECT id FROM stock_uploads") == [(young,)]
    assert backend.execute("SELECT subject FROM jobs") == [(young,)]
    await carry_out(store)
    assert backend.execute("SELECT id FROM jobs") == []
