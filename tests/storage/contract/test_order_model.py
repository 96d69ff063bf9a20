"""Orders and their animals against a model: any history, on every store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from petstore.core.errors import Conflict, OrderNotFound, PetNotFound, PetstoreError
from petstore.core.orders import NewOrder, Order, OrderQuery, OrderStatus, ShipDate
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.storage.store import Store
from tests.storage.contract.test_orders import APPROVED, CANCELLED, DELIVERED, PLACED, open_accounts
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

_moves = st.one_of(
    st.tuples(st.just("place"), st.integers(1, 2), st.integers(1, 4)),
    st.tuples(st.just("place"), st.integers(1, 2), st.integers(1, 4)),
    st.tuples(st.just("change"), st.integers(0, 7), st.sampled_from([None, *OrderStatus])),
    st.tuples(st.just("ship"), st.integers(0, 7), st.sampled_from([None, 1, 2, 3])),
    st.tuples(st.just("cancel"), st.integers(0, 7), st.integers(1, 2)),
    st.tuples(st.just("pet"), st.sampled_from(list(PetStatus)), st.integers(1, 4)),
    st.tuples(st.just("remove"), st.none(), st.integers(1, 4)),
)


class Model:
    """What orders and animals are after any history, by the documented rules in words of their own."""

    def __init__(self, first_pet: int, first_order: int, now_ms: int) -> None:
        self.first_pet = first_pet
        self.next_order = self.first_order = first_order
        self.now_ms = now_ms
        self.pets = {first_pet + n: "available" for n in range(4)}
        self.orders: dict[int, Order] = {}

    def place(self, account_id: int, pet_id: int) -> Order | type[Exception]:
        if self.pets.get(pet_id) != "available":
            return Conflict
        order = Order(self.next_order, account_id, pet_id, PLACED, None, self.now_ms)
        self.next_order += 1
        self.orders[order.id] = order
        self.pets[pet_id] = "pending"
        return order

    def change(
        self, order_id: int, status: OrderStatus | None, ship: ShipDate, account_id: int | None = None
    ) -> Order | type[Exception]:
        order = self.orders.get(order_id)
        if order is None or account_id not in (None, order.account_id):
            return OrderNotFound
        wanted = status or order.status
        steps = [(PLACED, APPROVED), (APPROVED, DELIVERED), (PLACED, CANCELLED), (APPROVED, CANCELLED)]
        if wanted is not order.status and (order.status, wanted) not in steps:
            return Conflict
        if (wanted is CANCELLED and ship) or (order.status is DELIVERED and ship is None):
            return Conflict
        if wanted is not order.status and wanted in (DELIVERED, CANCELLED):
            self.pets[order.pet_id] = "sold" if wanted is DELIVERED else "available"
        date = order.ship_date_ms if ship is UNSET else ship
        if wanted is DELIVERED:
            date = date or self.now_ms
        self.orders[order_id] = replace(order, status=wanted, ship_date_ms=date)
        return self.orders[order_id]

    def hold(self, pet_id: int) -> bool:
        return any(o.pet_id == pet_id and o.status in (PLACED, APPROVED) for o in self.orders.values())

    def change_pet(self, pet_id: int, status: PetStatus) -> type[Exception] | None:
        before = self.pets.get(pet_id)
        if before is None:
            return PetNotFound
        if before != status and (self.hold(pet_id) or (before, status) == ("sold", "pending")):
            return Conflict
        self.pets[pet_id] = status
        return None

    def remove_pet(self, pet_id: int) -> type[Exception] | None:
        if pet_id not in self.pets:
            return PetNotFound
        if self.hold(pet_id):
            return Conflict
        del self.pets[pet_id]
        return None


class TestModel:
    """Any history against the model (I9, I21)."""

    @pytest.mark.slow
    @given(history=st.lists(_moves, max_size=25))
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_orders_and_animals_are_what_the_model_says(
        self, backend: SharedData, clock: ManualClock, history: list[tuple[str, Any, Any]]
    ) -> None:
        """Placed, moved, given ship dates, cancelled by their account, and their animals changed and removed
        by hand, in any order: every result, every refusal, and the rows that are left."""
        store = backend.open()
        model = await self._begin(backend, store, clock)
        for what, first, second in history:
            assert await self._told(store, model, what, first, second) == self._expected(
                model, what, first, second
            ), (what, first, second)
        rows = backend.execute(f"SELECT id, status FROM pets WHERE id >= {model.first_pet} ORDER BY id")
        assert rows == list(model.pets.items())
        page = await store.orders.page(OrderQuery(limit=100, after_id=model.first_order - 1))
        assert page.orders == list(model.orders.values())
        await store.close()

    async def _begin(self, backend: SharedData, store: Store, clock: ManualClock) -> Model:
        if not await store.accounts.all():
            await open_accounts(store)
        pets = [(await store.pets.add(NewPet("x", 1), ACTOR)).pet for _ in range(4)]
        ((last,),) = backend.execute("SELECT coalesce(max(id), 0) FROM orders")
        return Model(pets[0].id, int(str(last)) + 1, clock.now_ms())

    async def _told(self, store: Store, model: Model, what: str, first: Any, second: Any) -> object:
        pet_id = model.first_pet + second - 1 if what in ("place", "pet", "remove") else 0
        order_id = model.first_order + first if what in ("change", "ship", "cancel") else 0
        try:
            match what:
                case "place":
                    return (await store.orders.place(first, NewOrder(pet_id), ACTOR)).order
                case "change":
                    return await store.orders.change(order_id, ACTOR, status=second)
                case "ship":
                    return await store.orders.change(order_id, ACTOR, ship_date_ms=second)
                case "cancel":
                    return await store.orders.change(order_id, ACTOR, status=CANCELLED, account_id=second)
                case "pet":
                    await store.pets.change(pet_id, PetChange(status=first), ACTOR)
                case "remove":
                    await store.pets.remove(pet_id, ACTOR)
        except PetstoreError as error:
            return type(error)
        return None

    def _expected(self, model: Model, what: str, first: Any, second: Any) -> object:
        match what:
            case "place":
                return model.place(first, model.first_pet + second - 1)
            case "change":
                return model.change(model.first_order + first, second, UNSET)
            case "ship":
                return model.change(model.first_order + first, None, second)
            case "cancel":
                return model.change(model.first_order + first, CANCELLED, UNSET, second)
            case "pet":
                return model.change_pet(model.first_pet + second - 1, first)
        return model.remove_pet(model.first_pet + second - 1)
