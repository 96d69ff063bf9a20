"""What every store does with a change and a removal of an animal: rules, journal, orders, many at once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.core.errors import Conflict, PetNotFound
from petstore.core.orders import OPEN, OrderStatus
from petstore.core.pets import Pet, PetChange, PetChangedMeanwhile, PetQuery, PetStatus
from petstore.storage.store import Store
from tests.storage.contract.test_orders import WAYS, open_accounts, place
from tests.storage.contract.test_pets import fill
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, recorded

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD


def entries(backend: SharedData) -> list[tuple[Any, ...]]:
    return recorded(backend.execute, "pet")


async def order(store: Store, status: OrderStatus) -> None:
    """An order of animal 3 that has come to this state."""
    await open_accounts(store, 1)
    await place(store, 3)
    for step in WAYS[status]:
        await store.orders.change(1, ACTOR, status=step)


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
        assert changed == await store.pets.get_or_none(3) == expected
        assert (await store.pets.page(PetQuery())).pets == [*pets[:2], changed, pets[3]]
        assert entries(backend) == [("cli:anna", 3, "changed", before, after)]

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
                assert await store.pets.get_or_none(pet.id) == pet
            else:
                expected = Pet(pet.id, "x", pet.category_id, after)
                assert await store.pets.change(pet.id, change, "staff") == expected
                changed += 1
            assert len(entries(backend)) == changed

    async def test_an_animal_that_is_not_there_is_neither_changed_nor_removed(
        self, backend: SharedData, store: Store
    ) -> None:
        """The error names it, and nothing is written."""
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
        current = await backend.open().pets.change(1, meanwhile, "cli:anna")
        told = entries(backend)
        with pytest.raises(PetChangedMeanwhile, match="Animal 1 has changed meanwhile") as refused:
            await store.pets.change(1, PetChange("x", 9, SOLD), "cli:ben", expected=pets[0])
        assert refused.value.current == current == await store.pets.get_or_none(1)
        assert entries(backend) == told

    async def test_what_is_already_so_is_no_change(self, backend: SharedData, store: Store) -> None:
        """A change that is sent twice is not refused; it is recorded once."""
        pets = await fill(store, 1)
        change = PetChange("Mia", 1, PENDING)
        answers = [await store.pets.change(1, change, "cli:anna", expected=pets[0]) for _ in range(2)]
        assert answers == [Pet(1, "Mia", 1, PENDING)] * 2
        assert len(entries(backend)) == 1


async def test_what_a_removed_animal_was_is_recorded(
    backend: SharedData, store: Store, clock: ManualClock
) -> None:
    """It is gone from every list, its identifier of a stock list as well; its journal stays."""
    pets = await fill(store, 3)
    backend.execute("INSERT INTO pet_sources (source_key, pet_id) VALUES ('a', 1), ('b', 2)")
    await store.pets.change(2, PetChange(name="Mia"), "cli:anna")
    removed = await store.pets.remove(2, "api:shop/key 7")
    assert removed == Pet(2, "Mia", 2, SOLD)
    assert await store.pets.get_or_none(2) is None
    assert (await store.pets.page(PetQuery())).pets == [pets[0], pets[2]]
    assert (await store.pets.page(PetQuery(status=SOLD))).pets == []
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

    @pytest.mark.parametrize("status", OPEN)
    async def test_an_open_order_holds_its_animal(
        self, backend: SharedData, store: Store, status: OrderStatus
    ) -> None:
        """The status stays and so does the animal; name and category can change. The order is named."""
        await fill(store, 4)
        await order(store, status)
        before = await store.pets.get_or_none(3), entries(backend)
        assert [await store.pets.open_order(pet) for pet in (3, 2)] == [1, None]
        for attempt in (
            store.pets.change(3, PetChange(status=AVAILABLE), "staff"),
            store.pets.change(3, PetChange("x", 9, SOLD), "staff"),
            store.pets.remove(3, "staff"),
        ):
            with pytest.raises(Conflict, match="Order 1 holds animal 3"):
                await attempt
        assert (await store.pets.get_or_none(3), entries(backend)) == before
        change = PetChange("x", 9, PENDING)
        assert await store.pets.change(3, change, "staff") == Pet(3, "x", 9, PENDING)
        await store.pets.remove(4, "staff")

    @pytest.mark.parametrize("status", [OrderStatus.DELIVERED, OrderStatus.CANCELLED])
    async def test_an_order_that_has_ended_does_not(self, store: Store, status: OrderStatus) -> None:
        """The animal can be changed and removed; the order stays."""
        await fill(store, 3)
        await order(store, status)
        for changed in (SOLD, AVAILABLE):
            await store.pets.change(3, PetChange(status=changed), "staff")
        await store.pets.remove(3, "staff")
        assert (await store.orders.get(1)).status is status
