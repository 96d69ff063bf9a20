"""Imports that are reverted, for every store: all animals become what they were before, or none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from petstore.background.jobs import Progress
from petstore.background.list_reverts import ListReverter
from petstore.core.errors import Conflict, NotFound
from petstore.core.journal import Entry
from petstore.core.limits.plans import FREE
from petstore.core.list_reverts import DONE, NOT_WHOLE, ListRevert
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, Pet, PetChange, PetQuery, PetStatus
from petstore.core.uploads import BROKEN, UploadState
from petstore.storage.store import Store
from petstore.transactions import list_reverts
from petstore.transactions.jobs import LEASE_MS
from petstore.transactions.list_reverts import REVERT_JOB
from petstore.transactions.script import Script
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.jobs import carry_out, keep_list, work
from tests.support.journal import ACTOR, entries, history_faults

ANNA, OTTO = "console:anna", "console:otto"
HEAD = b"sku,name,categoryId,status,price,note\r\n"
FIRST = HEAD + b"A,Rex,1,,5.00,\r\nB,Mia,2,sold,,shy\r\nC,Tom,3,,,\r\n"
# It changes Rex (1) and Mia (2), leaves Tom (3) as he is, and adds Eva (5).
SECOND = HEAD + b"A,Max,5,,7.50,new\r\nB,Mia,2,available,,\r\nC,Tom,3,,,\r\nD,Eva,4,,,\r\n"


async def imported(store: Store, content: bytes) -> Entry:
    """The end of an import by ANNA."""
    upload_id = await keep_list(store, content, ANNA, key_name="sku", file="dogs.csv")
    await carry_out(store)
    found = await store.list_reverts.of_upload(await work(store, upload_id, UploadState.STORING, ANNA))
    assert found is not None
    return found.finished


async def imported_second(store: Store) -> Entry:
    """The end of SECOND, after FIRST and an animal that ANNA added by hand."""
    await imported(store, FIRST)
    await store.pets.add(NewPet("Own", 1), ANNA)
    return await imported(store, SECOND)


async def reverted(store: Store, finished: Entry, actor: str = OTTO) -> ListRevert:
    await store.list_reverts.ask(finished.id, actor)
    await carry_out(store)
    return await store.list_reverts.get(finished.id)


async def pets(store: Store) -> list[Pet]:
    return (await store.pets.page(PetQuery(100))).pets


async def test_animals_are_as_before(store: Store, backend: SharedData) -> None:
    """Added ones are gone, changed ones have their former values. Each has one entry, by who took it back;
    the last one counts them."""
    finished = await imported_second(store)
    assert (await reverted(store, finished)).is_done
    available = PetStatus.AVAILABLE
    assert await pets(store) == [
        Pet(1, "Rex", 1, available, 500),
        Pet(2, "Mia", 2, PetStatus.SOLD, None, "shy"),
        Pet(3, "Tom", 3, available),
        Pet(4, "Own", 1, available),
    ]
    *_, eva, rex, mia, end = await entries(store)
    assert [(each.actor, each.type, each.about) for each in (eva, rex, mia)] == [
        (OTTO, "pet.removed", "pet:5"),
        (OTTO, "pet.changed", "pet:1"),
        (OTTO, "pet.changed", "pet:2"),
    ]
    counts = {"list": "dogs.csv", "import": finished.id, "removed": 1, "changed": 2}
    assert (end.type, end.actor, end.after) == ("store.list_taken_back", OTTO, counts)
    assert history_faults(backend.execute) == []


async def test_it_is_found_when_the_clock_goes_back_meanwhile(store: Store, clock: ManualClock) -> None:
    """A list is found though the clock of the machine that took it is minutes ahead of the storing one."""
    upload_id = await keep_list(store, FIRST, ANNA, key_name="sku")
    clock.set_by(-600)
    await carry_out(store)
    stored = await work(store, upload_id, UploadState.STORING, ANNA)
    assert await store.list_reverts.of_upload(stored) is not None


async def test_twice_and_the_list_again(store: Store, backend: SharedData) -> None:
    """Who takes it back again is told who was first. The list is stored again when it is sent again, as
    another import."""
    first = await imported(store, FIRST)
    await store.list_reverts.ask(first.id, OTTO)
    with pytest.raises(Conflict, match="being taken back already"):
        await store.list_reverts.ask(first.id, ANNA)
    await carry_out(store)
    with pytest.raises(Conflict, match="taken back already, by otto"):
        await store.list_reverts.ask(first.id, ANNA)
    assert backend.execute("SELECT count(*) FROM pet_sources") == [(0,)]
    second = await imported(store, FIRST)
    assert [pet.name for pet in await pets(store)] == ["Rex", "Mia", "Tom"]
    assert (await reverted(store, second)).is_done
    assert (await pets(store), history_faults(backend.execute)) == ([], [])


async def orders_and_cancels(store: Store) -> None:
    await store.accounts.add("shop", FREE, ACTOR)
    await store.orders.place(1, NewOrder(5), ACTOR)
    await store.orders.change(1, ACTOR, status=OrderStatus.CANCELLED)


MEANWHILE: dict[str, tuple[int, Callable[[Store], Awaitable[object]]]] = {
    "changed": (2, lambda store: store.pets.change(2, PetChange(name="Mimi"), ACTOR)),
    "ordered": (5, orders_and_cancels),
    "removed": (1, lambda store: store.pets.remove(1, ACTOR)),
    "in another list": (1, lambda store: imported(store, FIRST.split(b"B,")[0])),
}


@pytest.mark.parametrize("what", MEANWHILE)
async def test_none_when_one_was_changed_since(store: Store, what: str) -> None:
    """It is named. Another animal's change prevents nothing."""
    finished = await imported_second(store)
    await store.pets.change(4, PetChange(name="Other"), ACTOR)
    pet_id, happen = MEANWHILE[what]
    await happen(store)
    before = await pets(store)
    found = await reverted(store, finished)
    assert found.last is not None
    assert found.last.after is not None
    assert (found.last.type, found.last.actor) == ("store.list_not_taken_back", OTTO)
    assert found.last.after["animals"] == [pet_id]
    assert (found.is_running, await pets(store)) == (False, before)


@through_pgbouncer_too
async def test_a_process_that_was_taken_for_dead(store: Store, clock: ManualClock) -> None:
    """Another one takes the list back in its place; when it goes on, it does nothing and says nothing."""
    finished = await imported_second(store)
    await store.list_reverts.ask(finished.id, OTTO)
    frozen = await store.jobs.take(REVERT_JOB)
    assert frozen is not None
    async with store.stock.importing(OTTO, None, finished) as late:
        await late.plan()
        clock.advance(LEASE_MS / 1_000)
        await carry_out(store)
        before = await entries(store)
        with pytest.raises(Conflict, match="taken back already"):
            await late.store()
    await ListReverter(store).carry_out(frozen, Progress())
    await ListReverter(store).give_up(frozen)
    assert await entries(store) == before


async def test_a_change_while_it_is_planned(store: Store) -> None:
    """The transaction that takes it back looks again."""
    finished = await imported_second(store)
    async with store.stock.importing(OTTO, None, finished) as load:
        await load.plan()
        await store.pets.change(1, PetChange(name="Mine"), ACTOR)
        before = await pets(store)
        with pytest.raises(Conflict, match="removed since: 1"):
            await load.store()
    assert await pets(store) == before


async def test_a_failure_at_the_end_undoes_all(
    store: Store, backend: SharedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is half done, and it can be tried again."""
    finished = await imported_second(store)
    before = await pets(store)
    note = list_reverts._note

    def fail_at_the_end(now_ms: int, actor: str, of: Entry, action: str, **more: object) -> Script[None]:
        if action == DONE:
            raise RuntimeError
        return note(now_ms, actor, of, action, **more)

    monkeypatch.setattr(list_reverts, "_note", fail_at_the_end)
    found = await reverted(store, finished)
    assert (found.is_done, await pets(store), history_faults(backend.execute)) == (False, before, [])
    monkeypatch.undo()
    assert (await reverted(store, finished)).is_done


async def test_what_the_journal_does_not_have(store: Store, backend: SharedData) -> None:
    """Nothing is taken back without all entries of its animals; what ended in three processes may be tried
    again; an entry that is no import's end is none."""
    finished = await imported(store, FIRST)
    await store.list_reverts.ask(finished.id, OTTO)
    job = await store.jobs.take(REVERT_JOB)
    assert job is not None
    await ListReverter(store).give_up(job)
    await store.jobs.finish(job)
    messages = [((await store.list_reverts.get(finished.id)).last or finished).after]
    backend.execute("DELETE FROM journal WHERE subject = 'pet' AND subject_id = 1")
    messages.append(((await reverted(store, finished)).last or finished).after)
    assert [(each or {})["message"] for each in messages] == [BROKEN, NOT_WHOLE]
    assert len(await pets(store)) == 3
    with pytest.raises(NotFound, match="no such import"):
        await store.list_reverts.ask(finished.id - 1, OTTO)
