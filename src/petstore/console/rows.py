"""What can be done with chosen rows of the lists: animals, orders, keys."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from petstore.console.categories import names_in
from petstore.console.confirmations import about_ship_date, about_status
from petstore.console.pet_forms import version_of_pet
from petstore.console.several import Act, Action, Rows, act
from petstore.console.visit import INCOMPLETE_FORM, View, Visit
from petstore.core.errors import Conflict, InvalidBody
from petstore.core.orders import ORDER_STATUSES, OrderStatus
from petstore.core.people import Role
from petstore.core.pets import STATUSES, PetChange, PetChangedMeanwhile


async def _begin_pets(visit: Visit, name: str) -> tuple[Act, str]:
    """Raises Invalid for a category."""
    if name == "category":
        names = await names_in(visit)
        category_id = names.read(visit.form.get("category", ""))
        wanted, state = PetChange(category_id=category_id), f"in {names.label(category_id)}"
    else:
        wanted, state = PetChange(status=STATUSES[name]), name

    async def change(pet_id: int, shown: str) -> str:
        pet = await visit.store.pets.get(pet_id)
        if version_of_pet(pet) != shown:
            raise PetChangedMeanwhile(pet)
        if wanted.status is not UNSET:
            visit.check_sure(await about_status(visit, pet_id, pet.status, wanted.status))
        changed = await visit.store.pets.change(pet_id, wanted, visit.actor, expected=pet)
        if changed == pet:
            raise Conflict(f"Animal {pet_id} is {state} already.")
        return version_of_pet(changed)

    return change, state


async def _begin_orders(visit: Visit, name: str) -> tuple[Act, str]:
    status = ORDER_STATUSES[name]

    async def move(order_id: int, shown: str) -> str:
        order = await visit.store.orders.get(order_id)
        if order.status is status:
            raise Conflict(f"Order {order_id} is {status} already.")
        expected = ORDER_STATUSES.get(shown)
        if expected is None:
            raise InvalidBody(INCOMPLETE_FORM)
        if status is OrderStatus.DELIVERED and order.ship_date_ms is not None:
            visit.check_sure(about_ship_date(visit, order, order.ship_date_ms))
        await visit.store.orders.change(order_id, visit.actor, status=status, expected=expected)
        return ""

    return move, status.value


async def _begin_keys(visit: Visit, _name: str) -> tuple[Act, str]:
    async def revoke(key_id: int, _shown: str) -> str:
        key = await visit.store.keys.get(key_id)
        if key.revoked_at_ms is not None:
            raise Conflict(f"Key {key_id} is revoked already.")
        await visit.store.keys.revoke(key_id, visit.actor)
        return ""

    return revoke, "revoked"


PETS = Rows(
    "Animal",
    "animals",
    "pets/{}",
    (
        Action("category", "Move"),
        Action("sold", "Mark sold"),
        Action("available", "Make available"),
        Action("pending", "Make pending"),
    ),
    _begin_pets,
    "pet",
)
ORDERS = Rows(
    "Order",
    "orders",
    "orders/{}",
    (
        Action(OrderStatus.APPROVED, "Approve"),
        Action(OrderStatus.DELIVERED, "Deliver"),
        Action(
            OrderStatus.CANCELLED, "Cancel…", "This can't be undone. Others can then order the animals again."
        ),
    ),
    _begin_orders,
)
KEYS = Rows(
    "Key",
    "keys",
    "keys/{}",
    (Action("revoked", "Revoke…", "Their next requests are refused. There is no way back: issue new keys."),),
    _begin_keys,
)
VIEWS = [
    View("POST", "/several/pet", partial(act, rows=PETS), Role.STAFF),
    View("POST", "/several/order", partial(act, rows=ORDERS), Role.STAFF),
    View("POST", "/several/key", partial(act, rows=KEYS), Role.OPERATOR),
]
