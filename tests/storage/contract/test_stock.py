"""Stock lists, for every store: what an import adds, changes, refuses and records."""

from __future__ import annotations

import asyncio
import io

import pytest

from petstore.core.limits.plans import resolve_plan
from petstore.core.lists.importing import BadRows, plan_and_store
from petstore.core.lists.stock_list import ListContext
from petstore.core.lists.table_lists import TableList
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, Pet, PetChange, PetQuery, PetStatus
from petstore.core.stock import StockPlan, StockRow
from petstore.storage.store import Store
from petstore.transactions.journal import encode
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.journal import ACTOR, entries
from tests.support.stock import stock_row

JOURNAL = "SELECT actor, subject_id, action, before, after FROM journal WHERE subject = 'pet' ORDER BY id"


def rows(*members: tuple[str | None, str, int, str | None]) -> list[StockRow]:
    """Rows from line 2 on: source key, name, category, status."""
    return [stock_row(line, *each) for line, each in enumerate(members, 2)]


async def run_import(store: Store, *members: tuple[str | None, str, int, str | None]) -> StockPlan:
    """Import a list as a command does; what was done."""
    keyed = any(key is not None for key, *_ in members)
    async with store.stock.importing(ACTOR, "sku" if keyed else None) as load:
        await load.stage(rows(*members))
        plan = await load.plan()
        assert await load.store() is not None
        return plan


async def faults(store: Store, *members: tuple[str | None, str, int, str | None]) -> list[tuple[int, str]]:
    """The lines and faults of a list, of which nothing is stored."""
    async with store.stock.importing(ACTOR, "sku") as load:
        await load.stage(rows(*members))
        await load.plan()
        return [(row.line, fault) async for page in load.rejected() for row, fault in page]


async def animals(store: Store) -> list[tuple[int, str, int, str]]:
    page = await store.pets.page(PetQuery(100))
    return [(pet.id, pet.name, pet.category_id, pet.status.value) for pet in page.pets]


class TestAdditions:
    async def test_rows_become_animals_in_their_order(self, store: Store, backend: SharedData) -> None:
        """Identifiers follow on and are used up, a missing status means available, and each addition is one
        entry, of the same bytes as that of a single addition."""
        await store.pets.add(NewPet("Old", 1), ACTOR)
        name = 'a"b\\c/d\u2028é🐕'
        done = await run_import(store, (None, name, -5, None), (None, "Ünal", 2**63 - 1, "sold"))
        assert done == StockPlan(added=2, changed=0, unchanged=0, rejected=0)
        (_, *added) = await animals(store)
        first, second = (pet_id for pet_id, *_ in added)
        assert second == first + 1
        assert [pet[1:] for pet in added] == [(name, -5, "available"), ("Ünal", 2**63 - 1, "sold")]
        members = {"name": name, "categoryId": -5, "status": "available"}
        assert backend.execute(JOURNAL)[-2:] == [
            (ACTOR, first, "added", None, encode(members)),
            (ACTOR, second, "added", None, f'{{"name":"Ünal","categoryId":{2**63 - 1},"status":"sold"}}'),
        ]
        assert (await store.pets.add(NewPet("Luna", 1), ACTOR)).pet.id == second + 1

    async def test_caches_learn_of_it(self, store: Store, backend: SharedData) -> None:
        """An import moves the version of the animals, so that no cached page is served after it."""
        other = backend.open()
        before = await other.versions.current()
        await run_import(store, ("A1", "Rex", 1, None))
        added = await other.versions.current()
        assert added.catalogue != before.catalogue
        await run_import(store, ("A1", "Max", 1, None))
        assert (await other.versions.current()).catalogue != added.catalogue


class TestSourceKeys:
    async def test_the_same_list_again_changes_nothing(self, store: Store, backend: SharedData) -> None:
        """Nothing is added, changed or recorded, and no cached page is dropped."""
        listed = (("A1", "Rex", 1, "available"), ("A2", "Mia", 2, None))
        await run_import(store, *listed)
        before, entries = await animals(store), backend.execute(JOURNAL)
        version = await store.versions.current()
        assert await run_import(store, *listed) == StockPlan(0, 0, 2, 0)
        assert await animals(store) == before
        assert backend.execute(JOURNAL) == entries
        if backend.exact_versions:
            assert await store.versions.current() == version

    async def test_only_what_changed_is_changed(self, store: Store, backend: SharedData) -> None:
        """The entry has the members that changed; new rows are added beside. A list without statuses does not
        put a sold animal on sale again."""
        await run_import(store, ("A1", "Rex", 1, None), ("A2", "Mia", 2, "sold"), ("A3", "Leo", 3, None))
        done = await run_import(
            store,
            ("A3", "Leo", 3, None),
            ("A4", "New", 4, None),
            ("A1", 'M"ax', 1, "sold"),
            ("A2", "Mia", 9, None),
        )
        assert done == StockPlan(added=1, changed=2, unchanged=1, rejected=0)
        assert [pet[1:] for pet in await animals(store)] == [
            ('M"ax', 1, "sold"),
            ("Mia", 9, "sold"),
            ("Leo", 3, "available"),
            ("New", 4, "available"),
        ]
        changed = [entry for entry in backend.execute(JOURNAL) if entry[2] == "changed"]
        assert [entry[3:] for entry in changed] == [
            ('{"name":"Rex","status":"available"}', '{"name":"M\\"ax","status":"sold"}'),
            ('{"categoryId":2}', '{"categoryId":9}'),
        ]

    async def test_a_key_twice_is_a_fault_of_both_rows(self, store: Store) -> None:
        """A key that is in two rows is a fault of both: neither row is preferred to the other."""
        listed = [("A1", "Rex", 1, None), ("A2", "Mia", 1, None), ("A1", "Max", 1, None)]
        assert await faults(store, *listed) == [
            (2, "sku: line 4 has the same"),
            (4, "sku: line 2 has the same"),
        ]
        assert await run_import(store, *listed) == StockPlan(1, 0, 0, 2)
        assert [pet[1] for pet in await animals(store)] == ["Mia"]

    async def test_a_status_that_is_no_allowed_move_is_a_fault_as_in_a_patch(self, store: Store) -> None:
        """A stock list moves no animal where a person could not."""
        await run_import(store, ("A1", "Rex", 1, "sold"))
        ((pet_id, *_),) = await animals(store)
        assert await faults(store, ("A1", "Max", 1, "pending"), ("A2", "Mia", 1, None)) == [
            (2, f"Animal {pet_id} is sold: it can become available, not pending.")
        ]

    async def test_open_orders_hold(self, store: Store) -> None:
        """An open order decides its animal's status, as in a PATCH; the name may change."""
        await run_import(store, ("A1", "Rex", 1, None))
        ((pet_id, *_),) = await animals(store)
        account = await store.accounts.add("shop", resolve_plan("free"), ACTOR)
        order = (await store.orders.place(account.id, NewOrder(pet_id), ACTOR)).order
        assert await faults(store, ("A1", "Rex", 1, "available")) == [
            (
                2,
                f"Order {order.id} holds animal {pet_id}, so its status can't change; deliver or cancel the"
                " order first.",
            )
        ]
        assert await run_import(store, ("A1", "Max", 1, "pending")) == StockPlan(0, 1, 0, 0)

    async def test_a_removed_animal_is_added_anew(self, store: Store) -> None:
        """The key of a removed animal went with it."""
        await run_import(store, ("A1", "Rex", 1, None))
        ((pet_id, *_),) = await animals(store)
        await store.pets.remove(pet_id, ACTOR)
        assert await run_import(store, ("A1", "Rex", 1, None)) == StockPlan(1, 0, 0, 0)
        ((again, *_),) = await animals(store)
        assert again > pet_id
        assert await store.stock.source_keys([pet_id, again]) == {again: "A1"}
        assert await store.stock.source_keys([]) == {}


class TestInterruption:
    async def test_before_the_commit_nothing_is_stored(self, store: Store) -> None:
        """Whatever step is cancelled ends as cancelled, also when it was just done."""
        listed = rows(*((f"A{number}", "Rex", 1, None) for number in range(5_000)))
        for step in ("stage", "plan"):
            async with store.stock.importing(ACTOR, "sku") as load:
                if step == "plan":
                    await load.stage(listed)
                work = asyncio.ensure_future(load.stage(listed) if step == "stage" else load.plan())
                await asyncio.sleep(0)
                work.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await work
            assert await animals(store) == []

    async def test_a_commit_is_not_taken_for_cancelled(self, store: Store) -> None:
        """The answer is the outcome: all rows with a result, or none without."""
        async with store.stock.importing(ACTOR, None) as load:
            await load.stage(rows((None, "Rex", 1, None)))
            await load.plan()
            work = asyncio.ensure_future(load.store())
            await asyncio.sleep(0)
            work.cancel()
            try:
                stored = await work is not None
            except asyncio.CancelledError:
                stored = False
        assert len(await animals(store)) == int(stored)


class TestOthersMeanwhile:
    async def test_a_plan_that_no_longer_holds_is_not_stored(self, backend: SharedData) -> None:
        """An animal that changes after the plan makes the import plan anew."""
        store, other = backend.open(), backend.open()
        await run_import(store, ("A1", "Rex", 1, None), ("A2", "Mia", 1, None))
        (first, _) = await animals(store)
        async with store.stock.importing(ACTOR, "sku") as load:
            await load.stage(rows(("A1", "Max", 1, None), ("A9", "New", 1, None)))
            await load.plan()
            await other.pets.change(first[0], PetChange(name="Bo"), "api:shop/key 1")
            assert await load.store() is None
            assert len(await animals(store)) == 2
            assert await load.plan() == StockPlan(1, 1, 0, 0)
            assert await load.store() is not None
        assert [pet[1] for pet in await animals(store)] == ["Max", "Mia", "New"]

    async def test_imports_at_once_add_each_animal_once(self, backend: SharedData) -> None:
        """One list comes through several stores; the others find it unchanged."""
        stores = [backend.open() for _ in range(3)]

        async def load_until_stored(store: Store) -> StockPlan:
            async with store.stock.importing(ACTOR, "sku") as load:
                await load.stage(rows(*((f"A{number}", "Rex", 1, None) for number in range(50))))
                plan = await load.plan()
                while await load.store() is None:
                    plan = await load.plan()
                return plan

        plans = await asyncio.gather(*map(load_until_stored, stores))
        assert sorted((plan.added, plan.unchanged) for plan in plans) == [(0, 50), (0, 50), (50, 0)]
        assert len(await animals(stores[0])) == 50

    async def test_an_animal_that_was_ordered_since_is_planned_again(self, backend: SharedData) -> None:
        """It is, even if it looks as it did: an open order decides its status."""
        store, other = backend.open(), backend.open()
        await run_import(store, ("A1", "Rex", 1, "pending"))
        ((pet_id, *_),) = await animals(store)
        account = await other.accounts.add("shop", resolve_plan("free"), ACTOR)
        async with store.stock.importing(ACTOR, "sku") as load:
            await load.stage(rows(("A1", "Rex", 1, "available")))
            await load.plan()
            await other.pets.change(pet_id, PetChange(status=PetStatus.AVAILABLE), ACTOR)
            await other.orders.place(account.id, NewOrder(pet_id), ACTOR)
            assert await load.store() is None
            assert await load.plan() == StockPlan(0, 0, 0, 1)
        assert [pet[3] for pet in await animals(store)] == ["pending"]

    @through_pgbouncer_too
    async def test_a_list_is_stored_however_often_its_animals_change(
        self, backend: SharedData, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The last of some plans holds its animals; a change of then waits for the import."""
        store, other = backend.open(), backend.open()
        await run_import(store, ("A", "Rex", 1, None))
        ((pet_id, *_),) = await animals(store)
        changes: list[asyncio.Task[Pet]] = []
        async with store.stock.importing(ACTOR, "sku") as load:
            await load.stage(rows(("A", "Rex", 2, None)))
            make = load.plan

            async def plan(*, locked: bool = False) -> StockPlan:
                planned = await make(locked=locked)
                change = other.pets.change(pet_id, PetChange(name=f"Max {len(changes)}"), ACTOR)
                changes.append(asyncio.ensure_future(change))
                if not locked:
                    await changes[-1]
                return planned

            monkeypatch.setattr(load, "plan", plan)
            bad = BadRows(TableList(io.BytesIO(b"sku,name,categoryId"), "sku", ListContext()), None)
            done, _ = await plan_and_store(load, bad, wants=lambda plan: True)
        assert (done.changed, len(changes)) == (1, 4)
        assert await changes[-1] == Pet(pet_id, "Max 3", 2, PetStatus.AVAILABLE)
        kept = [entry.after for entry in await entries(store)]
        assert kept[-2:] == [{"name": "Rex", "categoryId": 2}, {"name": "Max 3"}]
