"""What every store does with a change and a removal of an animal: rules, journal, orders, many at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.core.errors import Conflict, PetNotFound, PetstoreError
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import PageQuery, Pet, PetChange, PetChangedMeanwhile, PetStatus
from petstore.storage.store import Store
from tests.storage.contract.test_pets import fill
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, history_faults, recorded

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD


def entries(backend: SharedData) -> list[tuple[Any, ...]]:
    return recorded(backend.execute, "pet")


def order(backend: SharedData, pet_id: int, status: str) -> None:
    """An order of an animal, the first one with the id 1."""
    backend.execute(
        "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
        " VALUES ('shop', 'free', 60, 1000, 0)"
    )
    backend.execute(
        "INSERT INTO orders (account_id, pet_id, status, created_at_ms)"
        f" SELECT id, {pet_id}, '{status}', 0 FROM accounts WHERE name = 'shop'"
    )


class TestChange:
    """`change`."""

    @pytest.mark.parametrize(
        ("change", "before", "after"),
        [
            (PetChange(name="Rex II"), {"name": "pet 3"}, {"name": "Rex II"}),
            (PetChange(category_id=-(2**63)), {"categoryId": 3}, {"categoryId": -(2**63)}),
            (PetChange(status=SOLD), {"status": "available"}, {"status": "sold"}),
            (
                PetChange("x", 0, PENDING),
                {"name": "pet 3", "categoryId": 3, "status": "available"},
                {"name": "x", "categoryId": 0, "status": "pending"},
            ),
            (PetChange("pet 3", 4, AVAILABLE), {"categoryId": 3}, {"categoryId": 4}),
        ],
    )
    async def test_what_was_sent_changes_and_what_changed_is_recorded(
        self, backend: SharedData, store: Store, change: PetChange, before: object, after: object
    ) -> None:
        """The other members stay; the entry has neither them nor those that were as they are."""
        pets = await fill(store, 4)
        changed = await store.pets.change(3, change, "cli:anna")
        sent = {name: value for name, value in asdict(change).items() if value is not UNSET}
        expected = replace(pets[2], **sent)
        assert changed == await store.pets.get(3) == expected
        assert (await store.pets.page(PageQuery())).pets == [*pets[:2], changed, pets[3]]
        assert entries(backend) == [("cli:anna", 3, "changed", before, after)]

    @pytest.mark.parametrize(
        "change", [PetChange(name="pet 3"), PetChange("pet 3", 3, AVAILABLE), PetChange(status=AVAILABLE)]
    )
    async def test_what_is_as_it_was_is_no_change(
        self, backend: SharedData, store: Store, change: PetChange
    ) -> None:
        """No entry in the journal."""
        pets = await fill(store, 3)
        assert await store.pets.change(3, change, "staff") == pets[2]
        assert entries(backend) == []

    @pytest.mark.parametrize("after", list(PetStatus))
    async def test_every_pair_of_states_follows_the_table(
        self, backend: SharedData, store: Store, after: PetStatus
    ) -> None:
        """A refused change leaves all as it was, and names the states that are allowed."""
        change, changed = PetChange(name="x", status=after), 0
        for pet in await fill(store, 3):
            if (pet.status, after) == (SOLD, PENDING):
                with pytest.raises(Conflict, match="is sold: it can become available, not pending"):
                    await store.pets.change(pet.id, change, "staff")
                assert await store.pets.get(pet.id) == pet
            else:
                expected = Pet(pet.id, "x", pet.category_id, after)
                assert await store.pets.change(pet.id, change, "staff") == expected
                changed += 1
            assert len(entries(backend)) == changed

    async def test_an_animal_that_is_not_there(self, backend: SharedData, store: Store) -> None:
        """Neither changed nor removed."""
        await fill(store, 1)
        with pytest.raises(PetNotFound, match="There is no animal 2"):
            await store.pets.change(2, PetChange(name="x"), "staff")
        with pytest.raises(PetNotFound, match="There is no animal 2"):
            await store.pets.remove(2, "staff")
        assert entries(backend) == []


class TestExpected:
    """`change` of an animal that has to be as its editor saw it."""

    async def test_what_nobody_changed_changes(self, store: Store) -> None:
        """The next one then expects the animal of this change."""
        pets = await fill(store, 2)
        mia = await store.pets.change(1, PetChange(name="Mia"), ACTOR, expected=pets[0])
        assert await store.pets.change(1, PetChange(status=SOLD), ACTOR, expected=mia) == replace(
            mia, status=SOLD
        )

    @pytest.mark.parametrize(
        "meanwhile", [PetChange(name="Mia"), PetChange(category_id=7), PetChange(status=AVAILABLE)], ids=str
    )
    async def test_what_somebody_changed_does_not(
        self, backend: SharedData, store: Store, meanwhile: PetChange
    ) -> None:
        """Whichever member it was. The error has the animal as it is; nothing is written."""
        pets = await fill(store, 1)
        present = await backend.open().pets.change(1, meanwhile, "cli:anna")
        told = entries(backend)
        with pytest.raises(PetChangedMeanwhile, match="Animal 1 has changed meanwhile") as refused:
            await store.pets.change(1, PetChange("x", 9, SOLD), "cli:ben", expected=pets[0])
        assert refused.value.present == present == await store.pets.get(1)
        assert entries(backend) == told

    async def test_what_is_already_so_is_no_change(self, backend: SharedData, store: Store) -> None:
        """A change that is sent twice is not refused; it is recorded once."""
        pets = await fill(store, 1)
        change = PetChange("Mia", 1, PENDING)
        answers = [await store.pets.change(1, change, "cli:anna", expected=pets[0]) for _ in range(2)]
        assert answers == [Pet(1, "Mia", 1, PENDING)] * 2
        assert len(entries(backend)) == 1

    async def test_an_animal_that_was_removed_is_not_found(self, store: Store) -> None:
        """There is nothing that could be as expected."""
        pets = await fill(store, 1)
        await store.pets.remove(1, ACTOR)
        with pytest.raises(PetNotFound):
            await store.pets.change(1, PetChange(name="x"), ACTOR, expected=pets[0])

    async def test_of_many_at_once_one_wins(self, backend: SharedData, store: Store) -> None:
        """Through two stores: the others are told what the winner has made of the animal."""
        pets = await fill(store, 1)
        stores = [store, backend.open()]
        answers = await asyncio.gather(
            *(
                stores[n % 2].pets.change(1, PetChange(name=f"n{n}"), f"s{n}", expected=pets[0])
                for n in range(12)
            ),
            return_exceptions=True,
        )
        (winner,) = (answer for answer in answers if isinstance(answer, Pet))
        refused = [answer for answer in answers if isinstance(answer, PetChangedMeanwhile)]
        assert [each.present for each in refused] == [winner] * 11
        assert await store.pets.get(1) == winner
        assert [entry[3:] for entry in entries(backend)] == [({"name": "pet 1"}, {"name": winner.name})]


class TestRemove:
    """`remove`."""

    async def test_what_it_was_is_recorded(
        self, backend: SharedData, store: Store, clock: ManualClock
    ) -> None:
        """It is gone from every list, its identifier of a stock list as well; its journal stays."""
        pets = await fill(store, 3)
        backend.execute("INSERT INTO pet_sources (source_key, pet_id) VALUES ('a', 1), ('b', 2)")
        await store.pets.change(2, PetChange(name="Mia"), "cli:anna")
        removed = await store.pets.remove(2, "api:shop/key 7")
        assert removed == Pet(2, "Mia", 2, SOLD)
        assert await store.pets.get(2) is None
        assert (await store.pets.page(PageQuery())).pets == [pets[0], pets[2]]
        assert (await store.pets.page(PageQuery(status=SOLD))).pets == []
        assert backend.execute("SELECT source_key FROM pet_sources") == [("a",)]
        assert entries(backend) == [
            ("cli:anna", 2, "changed", {"name": "pet 2"}, {"name": "Mia"}),
            ("api:shop/key 7", 2, "removed", {"name": "Mia", "categoryId": 2, "status": "sold"}, None),
        ]
        times = backend.execute("SELECT at_ms FROM journal WHERE action = 'removed'")
        assert times == [(clock.now_ms(),)]
        with pytest.raises(PetNotFound):
            await store.pets.remove(2, "staff")


class TestOrders:
    """An open order decides about its animal."""

    @pytest.mark.parametrize("status", ["placed", "approved"])
    async def test_an_open_order_holds_its_animal(
        self, backend: SharedData, store: Store, status: str
    ) -> None:
        """Its status stays and so does the animal; name and category can change. The order is named."""
        pets = await fill(store, 4)
        order(backend, 1, status)
        assert [await store.pets.open_order(pet) for pet in (1, 2)] == [1, None]
        for attempt in (
            store.pets.change(1, PetChange(status=AVAILABLE), "staff"),
            store.pets.change(1, PetChange("x", 9, SOLD), "staff"),
            store.pets.remove(1, "staff"),
        ):
            with pytest.raises(Conflict, match="Order 1 holds animal 1"):
                await attempt
        assert (await store.pets.get(1), entries(backend)) == (pets[0], [])
        change = PetChange("x", 9, PENDING)
        assert await store.pets.change(1, change, "staff") == Pet(1, "x", 9, PENDING)
        await store.pets.remove(4, "staff")

    @pytest.mark.parametrize("status", ["delivered", "cancelled"])
    async def test_an_order_that_has_ended_does_not(
        self, backend: SharedData, store: Store, status: str
    ) -> None:
        """Its animal can be changed and removed; the order stays."""
        await fill(store, 1)
        order(backend, 1, status)
        await store.pets.change(1, PetChange(status=SOLD), "staff")
        await store.pets.remove(1, "staff")
        assert backend.execute("SELECT pet_id, status FROM orders") == [(1, status)]


class TestManyAtOnce:
    """The outcome is one of an order of the changes, and the journal tells that order."""

    @pytest.mark.parametrize("round_number", range(3))
    async def test_changes_and_a_removal_of_one_animal(
        self, backend: SharedData, store: Store, round_number: int
    ) -> None:
        """Through two stores, as a server and a command have them. Each entry begins where the one before
        ended; after the removal all are refused."""
        await fill(store, 3)
        others = [store, backend.open()]
        changes = [
            others[n % 2].pets.change(3, PetChange(name=f"n{n}", status=SOLD if n % 2 else UNSET), f"s{n}")
            for n in range(20)
        ]
        changes.insert(round_number * 9, others[1].pets.remove(3, "end"))
        answers = await asyncio.gather(*changes, return_exceptions=True)
        assert {type(answer) for answer in answers} <= {Pet, PetNotFound}
        told = entries(backend)
        assert [entry[2] for entry in told].count("removed") == 1
        assert told[-1][2] == "removed"
        assert len(told) == sum(isinstance(answer, Pet) for answer in answers)
        assert history_faults(backend.execute) == []
        assert await store.pets.get(3) is None

    @pytest.mark.parametrize("round_number", range(3))
    async def test_changes_a_removal_and_orders_of_one_animal(
        self, backend: SharedData, store: Store, round_number: int
    ) -> None:
        """Through two stores: an open order has a pending animal, whose removal and status it refuses; the
        entries of animal and orders follow from each other."""
        await fill(store, 3)
        others = [store, backend.open()]
        await store.accounts.add("shop", FREE, ACTOR)

        async def order_and_cancel(number: int) -> None:
            placed = await others[number % 2].orders.place(1, NewOrder(3), f"o{number}")
            await others[number % 2].orders.change(
                placed.order.id, f"o{number}", status=OrderStatus.CANCELLED
            )

        works: list[Awaitable[object]] = []
        for n in range(12):
            status = (PENDING, AVAILABLE, SOLD)[n % 3]
            works += [
                order_and_cancel(n),
                others[n % 2].pets.change(3, PetChange(status=status), f"s{n}"),
            ]
        works.insert(8 * (round_number + 1), others[1].pets.remove(3, "end"))
        answers = await asyncio.gather(*works, return_exceptions=True)
        assert all(not isinstance(each, BaseException) or isinstance(each, PetstoreError) for each in answers)
        rows: list[Any] = backend.execute(
            "SELECT subject, actor, before, after FROM journal"
            " WHERE action <> 'added' AND subject IN ('pet', 'order') ORDER BY id"
        )
        now, open_orders = "available", 0
        for subject, actor, before, after in rows:
            if subject == "order":
                open_orders += 1 if before is None else -1
                assert open_orders in (0, 1)
            else:
                assert json.loads(before)["status"] == now
                assert actor.startswith("o") or open_orders == 0
                now = json.loads(after)["status"] if after else "removed"
        found = await store.pets.get(3)
        assert (found.status if found else "removed") == now
        assert open_orders == 0
