"""What every store of orders does: place, move, cancel, page; its animals follow in the same transaction."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from petstore.core.errors import (
    Conflict,
    IdempotencyKeyReused,
    OrderNotFound,
    PetNotFound,
    PetstoreError,
)
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.plans import resolve_plan
from petstore.core.moments import iso_moment
from petstore.core.orders import OPEN, NewOrder, Order, OrderQuery, OrderStatus
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import history_faults, recorded

PLACED, APPROVED, DELIVERED, CANCELLED = OrderStatus
# How an order gets to a state.
WAYS = {
    PLACED: [],
    APPROVED: [APPROVED],
    DELIVERED: [APPROVED, DELIVERED],
    CANCELLED: [CANCELLED],
}
# The rule in words of its own.
STEPS = {(PLACED, APPROVED), (APPROVED, DELIVERED), (PLACED, CANCELLED), (APPROVED, CANCELLED)}
REFERENCE = " PO-7 'ü\" \\ \u2028 $1 "
FOLLOWS = {PLACED: "pending", APPROVED: "pending", DELIVERED: "sold", CANCELLED: "available"}


@pytest.fixture
async def store(backend: SharedData) -> Store:
    """A store with two accounts."""
    opened = backend.open()
    await open_accounts(opened)
    return opened


async def open_accounts(store: Store, count: int = 2) -> None:
    """Accounts 1 to `count`."""
    for number in range(1, count + 1):
        await store.accounts.add(f"account{number}", resolve_plan("free", None, None), "test")


async def add_pets(store: Store, count: int) -> None:
    for number in range(1, count + 1):
        await store.pets.add(NewPet(f"pet {number}", 1), "test")


async def place(store: Store, pet_id: int = 1, account_id: int = 1) -> Order:
    return (await store.orders.place(account_id, NewOrder(pet_id), "test")).order


async def order_one(store: Store) -> None:
    """Add animal 1, and order it."""
    await add_pets(store, 1)
    await place(store)


async def status_of(store: Store, pet_id: int = 1) -> str:
    pet = await store.pets.get_or_none(pet_id)
    assert pet is not None
    return pet.status.value


def entries(backend: SharedData, subject: str = "order") -> list[tuple[Any, ...]]:
    return recorded(backend.execute, subject)


class TestPlace:
    """A new order reserves its animal."""

    async def test_an_order_reserves_its_animal(
        self, backend: SharedData, store: Store, clock: ManualClock
    ) -> None:
        """The animal is pending from the same transaction on; the journal has both changes with one actor."""
        await add_pets(store, 1)
        order = await place(store)
        assert order == Order(1, 1, 1, PLACED, None, clock.now_ms())
        assert await store.orders.get(1) == order
        assert await status_of(store) == "pending"
        after = {"accountId": 1, "petId": 1, "quantity": 1, "status": "placed", "complete": False}
        assert entries(backend) == [("test", 1, "placed", None, after)]
        changed = {"status": "available"}, {"status": "pending"}
        assert entries(backend, "pet") == [("test", 1, "changed", *changed)]

    @pytest.mark.parametrize("status", [PetStatus.PENDING, PetStatus.SOLD, None])
    async def test_only_an_available_animal_can_be_ordered(
        self, backend: SharedData, store: Store, status: PetStatus | None
    ) -> None:
        """An animal that is reserved, sold or absent can't be ordered, and nothing is written."""
        if status is not None:
            await store.pets.add(NewPet("Rex", 1, status), "test")
        with pytest.raises(Conflict):
            await place(store)
        assert (await store.orders.page(OrderQuery())).orders == []
        assert entries(backend) == entries(backend, "pet") == []

    async def test_the_index_refuses_a_second_open_order(self, backend: SharedData, store: Store) -> None:
        """An old program has made the animal available by hand: it is a conflict, not a failure."""
        await order_one(store)
        backend.execute("UPDATE pets SET status = 'available'")
        with pytest.raises(Conflict):
            await place(store, account_id=2)
        assert len(entries(backend)) == 1

    async def test_no_order_comes_after_its_accounts_closing(self, backend: SharedData, store: Store) -> None:
        """Whoever asked while it was open: of orders at once with the closing, through two stores, each is
        recorded before it, or is a conflict and leaves its animal available."""
        await add_pets(store, 12)
        stores = [store, backend.open()]
        calls = [place(stores[n % 2], n) for n in range(1, 12)]
        closing = stores[1].accounts.close("1", "test")
        results = await asyncio.gather(*calls[:5], closing, *calls[5:], return_exceptions=True)
        with pytest.raises(Conflict, match="is closed; place the order for another one"):
            await place(store, 12)
        placed = [result for result in results if isinstance(result, Order)]
        assert all(isinstance(result, Order | Conflict) for result in results if result is not results[5])
        assert len(entries(backend)) == len(entries(backend, "pet")) == len(placed)
        late = "SELECT 1 FROM journal o JOIN journal c ON c.action = 'closed' WHERE o.action = 'placed'"
        assert backend.execute(f"{late} AND o.id > c.id") == []

    async def test_a_key_places_one_order(self, store: Store) -> None:
        """The replay shows the order as it was placed, even if it has changed since."""
        await add_pets(store, 2)
        key = IdempotencyKey(1, "k")
        first = await store.orders.place(1, NewOrder(1), "test", key)
        await store.orders.change(1, "test", status=CANCELLED)
        again = await store.orders.place(1, NewOrder(1), "test", key)
        assert (first.replayed, again.replayed) == (False, True)
        assert again.order == first.order
        assert await status_of(store) == "available"
        with pytest.raises(IdempotencyKeyReused):
            await store.orders.place(1, NewOrder(2), "test", key)
        with pytest.raises(IdempotencyKeyReused):
            await store.pets.add(NewPet("Rex", 1), "test", key)

    async def test_a_reference_is_kept_as_it_came(self, backend: SharedData, store: Store) -> None:
        """The order and its entry of the journal have it, however the order changes."""
        await add_pets(store, 2)
        for pet_id, reference in ((1, REFERENCE), (2, "\U0001f415" * 255)):
            new = NewOrder(pet_id, reference=reference)
            placed = (await store.orders.place(1, new, "test")).order
            assert placed.reference == reference
            assert await store.orders.get(pet_id) == placed
            assert entries(backend)[-1][-1]["reference"] == reference
        first = (await store.orders.page(OrderQuery())).orders[0]
        assert first.reference == REFERENCE
        assert (await store.orders.change(1, "test", status=APPROVED)).reference == REFERENCE
        assert (await store.orders.get(1)).reference == REFERENCE
        assert entries(backend)[-1][3:] == ({"status": "placed"}, {"status": "approved"})

    async def test_a_key_is_of_one_reference(self, store: Store) -> None:
        """An order with another reference, or with one where there was none, is another request."""
        await add_pets(store, 2)
        others: set[str | UnsetType] = {REFERENCE, "other", UNSET}
        for pet_id, given in ((1, REFERENCE), (2, UNSET)):
            key, new = IdempotencyKey(1, f"k{pet_id}"), NewOrder(pet_id, reference=given)
            first = await store.orders.place(1, new, "test", key)
            again = await store.orders.place(1, new, "test", key)
            assert (again.replayed, again.order) == (True, first.order)
            for other in others - {given}:
                with pytest.raises(IdempotencyKeyReused):
                    await store.orders.place(1, NewOrder(pet_id, reference=other), "test", key)

    async def test_a_refused_order_leaves_its_key_free(self, store: Store) -> None:
        """The request succeeds once the animal is available."""
        await store.pets.add(NewPet("Rex", 1, PetStatus.SOLD), "test")
        with pytest.raises(Conflict):
            await store.orders.place(1, NewOrder(1), "test", IdempotencyKey(1, "k"))
        await store.pets.change(1, PetChange(status=PetStatus.AVAILABLE), "test")
        assert not (await store.orders.place(1, NewOrder(1), "test", IdempotencyKey(1, "k"))).replayed


class TestChange:
    """An order moves, and its animal with it."""

    async def test_every_pair_follows_the_table(self, backend: SharedData, store: Store) -> None:
        """A refused move, and one to the same state, leave order, animal and journal as they were."""
        for number, (before, after) in enumerate(itertools.product(OrderStatus, repeat=2), 1):
            await add_pets(store, 1)
            await place(store, number)
            for status in WAYS[before]:
                await store.orders.change(number, "test", status=status)
            written = len(entries(backend)), len(entries(backend, "pet"))
            if after is before or (before, after) in STEPS:
                expected = after
                assert (await store.orders.change(number, "test", status=after)).status is after
            else:
                expected = before
                with pytest.raises(Conflict):
                    await store.orders.change(number, "test", status=after)
            assert (await store.orders.get(number)).status is expected, (before, after)
            assert await status_of(store, number) == FOLLOWS[expected], (before, after)
            more = expected is not before, FOLLOWS[expected] != FOLLOWS[before]
            now = len(entries(backend)), len(entries(backend, "pet"))
            assert now == (written[0] + more[0], written[1] + more[1]), (before, after)

    async def test_the_journal_has_the_members_that_changed(
        self, backend: SharedData, store: Store, clock: ManualClock
    ) -> None:
        """A ship date alone is a change of its own."""
        await order_one(store)
        await store.orders.change(1, "a", status=APPROVED)
        await store.orders.change(1, "b", ship_date_ms=1_000)
        await store.orders.change(1, "b", ship_date_ms=1_000)
        await store.orders.change(1, "c", status=DELIVERED, ship_date_ms=clock.now_ms())
        first, second = ({"shipDate": iso_moment(at_ms)} for at_ms in (1_000, clock.now_ms()))
        approved, delivered = {"status": "approved"}, {"status": "delivered", "complete": True}
        assert entries(backend)[1:] == [
            ("a", 1, "approved", {"status": "placed"}, approved),
            ("b", 1, "changed", {}, first),
            ("c", 1, "delivered", {**approved, "complete": False, **first}, {**delivered, **second}),
        ]

    async def test_a_delivery_takes_place_now_unless_a_ship_date_is_given(
        self, store: Store, clock: ManualClock
    ) -> None:
        """One that was given before stays."""
        await add_pets(store, 2)
        for pet_id, given, expected in ((1, UNSET, clock.now_ms()), (2, 5_000, 5_000)):
            order = await place(store, pet_id)
            await store.orders.change(order.id, "test", status=APPROVED, ship_date_ms=given)
            assert (await store.orders.change(order.id, "test", status=DELIVERED)).ship_date_ms == expected

    async def test_a_ship_date_is_taken_back(self, backend: SharedData, store: Store) -> None:
        """A ship date of None takes the date back from an order that is not delivered: once is one entry of
        the journal, twice too."""
        await order_one(store)
        await store.orders.change(1, "a", ship_date_ms=1_000)
        for _ in range(2):
            assert (await store.orders.change(1, "b", ship_date_ms=None)).ship_date_ms is None
        assert entries(backend)[2:] == [("b", 1, "changed", {"shipDate": "1970-01-01T00:00:01.000Z"}, {})]
        assert (await store.orders.get(1)).ship_date_ms is None
        for status in (APPROVED, DELIVERED):
            await store.orders.change(1, "c", status=status)
        with pytest.raises(Conflict, match="keeps a ship date"):
            await store.orders.change(1, "d", ship_date_ms=None)

    async def test_of_two_people_at_once_one_moves_it(self, backend: SharedData, store: Store) -> None:
        """Both saw it placed: through two stores one approves it, one cancels it. The other one is told, also
        where it has come past its first read of the order."""
        await add_pets(store, 10)
        for pet_id in range(1, 11):
            await place(store, pet_id)
        ways = ((store, APPROVED), (backend.open(), CANCELLED))
        changes = [
            each.orders.change(order_id, "test", status=status, expected=PLACED)
            for order_id in range(1, 11)
            for each, status in ways
        ]
        answers = await asyncio.gather(*changes, return_exceptions=True)
        assert Counter(type(answer) for answer in answers) == {Order: 10, Conflict: 10}

    async def test_a_cancelled_order_gets_no_ship_date(self, store: Store) -> None:
        """A cancelled order gets no ship date, neither with its cancellation nor afterwards."""
        await order_one(store)
        with pytest.raises(Conflict):
            await store.orders.change(1, "test", status=CANCELLED, ship_date_ms=1)
        await store.orders.change(1, "test", status=CANCELLED)
        with pytest.raises(Conflict):
            await store.orders.change(1, "test", ship_date_ms=1)

    async def test_another_accounts_order_is_not_found(self, backend: SharedData, store: Store) -> None:
        """Another account's order is not found, whatever its state; without an account every order is."""
        await order_one(store)
        for order_id in (1, 2):
            with pytest.raises(OrderNotFound):
                await store.orders.change(order_id, "test", status=CANCELLED, account_id=2)
        assert len(entries(backend)) == 1
        assert (await store.orders.change(1, "test", status=CANCELLED, account_id=1)).status is CANCELLED

    @pytest.mark.parametrize("status", [PetStatus.AVAILABLE, PetStatus.SOLD])
    async def test_an_order_can_be_closed_whatever_became_of_its_animal(
        self, backend: SharedData, store: Store, status: PetStatus
    ) -> None:
        """No dead end: an old program moved the animals by hand, or one is gone. A sold one stays sold."""
        await add_pets(store, 4)
        for pet_id in range(1, 5):
            await place(store, pet_id)
            await store.orders.change(pet_id, "test", status=APPROVED)
        backend.execute(f"UPDATE pets SET status = '{status}'")
        backend.execute("DELETE FROM pets WHERE id > 2")
        for order_id, closed in ((1, DELIVERED), (2, CANCELLED), (3, DELIVERED), (4, CANCELLED)):
            assert (await store.orders.change(order_id, "test", status=closed)).status is closed
        assert [await status_of(store, pet_id) for pet_id in (1, 2)] == ["sold", status]

    @through_pgbouncer_too
    async def test_changes_at_once_wait_for_each_other(self, backend: SharedData, store: Store) -> None:
        """Delivered, cancelled, ordered again, changed and removed by hand through two stores: no deadlock,
        no failure, what an open order holds is pending (I21), and all of it is in the journal (I22)."""
        await add_pets(store, 3)
        stores = [store, backend.open()]
        for pet_id in (1, 2, 3):
            await place(store, pet_id)
            await store.orders.change(pet_id, "test", status=APPROVED)
        work: list[Any] = []
        for number in range(60):
            orders, pet_id = stores[number % 2].orders, 1 + number % 3
            work.append(orders.change(pet_id, "test", status=(DELIVERED, CANCELLED)[number // 2 % 2]))
            work.append(orders.place(1 + number % 2, NewOrder(pet_id), "test"))
            by_hand = stores[number // 2 % 2].pets
            sold = PetChange(name=f"Rex {number}", status=PetStatus.SOLD)
            work.append(by_hand.change(pet_id, sold, "test"))
            work.append(by_hand.change(pet_id, PetChange(status=PetStatus.AVAILABLE), "test"))
        work.append(stores[1].pets.remove(3, "test"))
        results = await asyncio.gather(*work, return_exceptions=True)
        assert [r for r in results if isinstance(r, BaseException) and not isinstance(r, PetstoreError)] == []
        assert {type(r) for r in results if isinstance(r, PetstoreError)} <= {Conflict, PetNotFound}
        held = backend.execute("SELECT pet_id FROM orders WHERE status IN ('placed', 'approved') ORDER BY 1")
        assert held == backend.execute("SELECT id FROM pets WHERE status = 'pending' ORDER BY 1")
        assert history_faults(backend.execute) == []


@through_pgbouncer_too
async def test_a_walk_through_combined_filters_has_each_order_once(store: Store) -> None:
    """A walk in pages of two has every order that satisfies all filters, once, in order of id."""
    await add_pets(store, 9)
    orders = [await place(store, n, 1 + n % 2) for n in range(1, 10)]
    for n, moved_to in ((2, CANCELLED), (5, CANCELLED), (8, CANCELLED), (3, APPROVED), (4, APPROVED)):
        orders[n] = await store.orders.change(orders[n].id, "test", status=moved_to)
    for account_id, (status, is_open), ids, newest_first in itertools.product(
        (None, 1, 2),
        ((None, False), (CANCELLED, False), (None, True)),
        (None, (), (1, 2, 4, 7, 99)),
        (False, True),
    ):
        expected = [
            order
            for order in (reversed(orders) if newest_first else orders)
            if account_id in (None, order.account_id)
            and status in (None, order.status)
            and (order.status in OPEN or not is_open)
            and (ids is None or order.id in ids)
        ]
        found: list[Order] = []
        more = True
        while more:
            after_id = found[-1].id if found else 0
            query = OrderQuery(account_id, 2, status, ids, after_id, newest_first, is_open)
            page = await store.orders.page(query)
            found, more = found + page.orders, page.has_more
        assert found == expected, query
        assert await store.orders.count(query) == len(expected), query
