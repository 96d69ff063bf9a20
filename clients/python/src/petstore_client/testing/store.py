"""Animals, orders, names of categories, their events, and what Idempotency-Keys have created."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from petstore_client.testing.bodies import iso, moment_ms
from petstore_client.testing.clock import Clock
from petstore_client.testing.messages import Refusal, encode, tag_of
from petstore_client.testing.windows import DAY_MS

Document = dict[str, Any]
DATA_SET = "fa4e00000000"
_PET_TRANSITIONS = {
    "available": ("pending", "sold"),
    "pending": ("available", "sold"),
    "sold": ("available",),
}
_ORDER_TRANSITIONS: dict[str, tuple[str, ...]] = {
    "placed": ("approved", "cancelled"),
    "approved": ("delivered", "cancelled"),
    "delivered": (),
    "cancelled": (),
}
_RELEASED_AS = {"delivered": "sold", "cancelled": "available"}
_SHOWN = {
    "pet": ("name", "categoryId", "status"),
    "order": ("petId", "quantity", "reference", "shipDate", "status", "complete"),
    "category": ("name",),
}


@dataclass(frozen=True)
class Order:
    """An order; `ship_date_ms` is a Unix time."""

    id: int
    account: str
    pet_id: int
    status: str = "placed"
    ship_date_ms: int | None = None
    reference: str | None = None

    def shown(self) -> Document:
        """The animal as clients see it."""
        return {
            "id": self.id,
            "petId": self.pet_id,
            "quantity": 1,
            **({} if self.reference is None else {"reference": self.reference}),
            **({} if self.ship_date_ms is None else {"shipDate": iso(self.ship_date_ms)}),
            "status": self.status,
            "complete": self.status == "delivered",
        }


class _Creation(NamedTuple):
    asked: tuple[str, Document]
    made: Document
    at_ms: int


class Store:
    """What the fake keeps; animals by id, as clients see them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._creations: dict[tuple[str, str], _Creation] = {}
        self._last_id = {"pet": 0, "order": 0}
        self.pets: dict[int, Document] = {}
        self.orders: dict[int, Order] = {}
        self.categories: dict[int, str] = {}
        self.events: list[tuple[Document, str | None]] = []  # with the account that sees it; None: all

    def add_pet(self, members: Document) -> Document:
        self._last_id["pet"] += 1
        pet = {"id": self._last_id["pet"], "status": "available", **members}
        pet = {name: pet[name] for name in ("id", *_SHOWN["pet"])}
        self.pets[pet["id"]] = pet
        self._note("created", "pet", {}, pet)
        return pet

    def change_pet(self, pet_id: int, change: Document, match: str | None) -> Document:
        pet = self._find(pet_id, match)
        if change.get("status", pet["status"]) != pet["status"]:
            self._check_free(pet_id, "its status can't change")
        return self._move(pet, change)

    def remove_pet(self, pet_id: int, match: str | None) -> None:
        pet = self._find(pet_id, match)
        self._check_free(pet_id, "it can't be removed")
        del self.pets[pet_id]
        self._note("deleted", "pet", pet, {})

    def name_category(self, category_id: int, name: str) -> None:
        was = self.categories.get(category_id)
        self.categories[category_id] = name
        before = {"id": category_id} | ({} if was is None else {"name": was})
        self._note("updated", "category", before, {"id": category_id, "name": name})

    def place(self, account: str, members: Document) -> Document:
        pet_id = members["petId"]
        pet = self.pets.get(pet_id)
        if pet is None:
            raise _conflict(f"There is no animal {pet_id} to order.")
        if pet["status"] != "available":
            raise _conflict(f"Animal {pet_id} is {pet['status']}: only one that is available can be ordered.")
        self._last_id["order"] += 1
        order = Order(self._last_id["order"], account, pet_id, reference=members.get("reference"))
        self.orders[order.id] = order
        self._note("created", "order", {}, order.shown(), account)
        self._move(pet, {"status": "pending"})
        return order.shown()

    def placed(self) -> dict[int, tuple[Document, str]]:
        """All orders as clients see them, each with its account."""
        return {each: (order.shown(), order.account) for each, order in self.orders.items()}

    def change_order(
        self, order_id: int, change: Document, match: str | None, account: str | None = None
    ) -> Document:
        """Move an order and its animal; with an `account`, another one's are not found."""
        order = self.orders.get(order_id)
        if order is None or account not in (None, order.account):
            raise Refusal("not_found", f"There is no order {order_id}.")
        _check_match(match, order.shown())
        after = self._changed(order, change)
        self.orders[order_id] = after
        if after != order:
            self._note("updated", "order", order.shown(), after.shown(), order.account)
        if after.status != order.status and after.status in _RELEASED_AS:
            self._move(self.pets[order.pet_id], {"status": _RELEASED_AS[after.status]})
        return after.shown()

    def _changed(self, order: Order, change: Document) -> Order:
        status = change.get("status", order.status)
        allowed = _ORDER_TRANSITIONS[order.status]
        if status not in (order.status, *allowed):
            can = f"it can become {' or '.join(allowed)}, not"
            can = can if allowed else "in its last state, it can't become"
            raise _conflict(f"Order {order.id} is {order.status}: {can} {status}.")
        ship_date = order.ship_date_ms
        if "shipDate" in change:
            ship_date = None if change["shipDate"] is None else moment_ms(change["shipDate"])
            if status == "cancelled" and ship_date is not None:
                raise _conflict(f"Order {order.id}: a cancelled order gets no ship date.")
            if order.status == "delivered" and ship_date is None:
                raise _conflict(f"Order {order.id}: a delivered order keeps a ship date; send another one.")
        if status == "delivered" and ship_date is None:
            ship_date = self._clock.ms
        return replace(order, status=status, ship_date_ms=ship_date)

    def create_once(
        self, owner: tuple[str, str], asked: tuple[str, Document], create: Callable[[], Document]
    ) -> tuple[Document, bool]:
        """What was created, and whether an earlier request of the last 24 hours did it. `owner` is an account
        with its key, `asked` the operation with all members."""
        known = self._creations.get(owner)
        if known is None or known.at_ms <= self._clock.ms - DAY_MS:
            made = create()
            self._creations[owner] = _Creation(asked, made, self._clock.ms)
            return made, False
        if known.asked != asked:
            raise Refusal(
                "idempotency_key_reused",
                "This Idempotency-Key was used within the last 24 hours for another request;"
                " use a new key for a new request.",
            )
        return known.made, True

    def _find(self, pet_id: int, match: str | None) -> Document:
        if pet_id not in self.pets:
            raise Refusal("not_found", f"There is no animal {pet_id}.")
        _check_match(match, self.pets[pet_id])
        return self.pets[pet_id]

    def _check_free(self, pet_id: int, prevented: str) -> None:
        for order in self.orders.values():
            if order.pet_id == pet_id and _ORDER_TRANSITIONS[order.status]:
                held = f"Order {order.id} holds animal {pet_id}, so {prevented}"
                raise _conflict(f"{held}; deliver or cancel the order first.")

    def _move(self, pet: Document, change: Document) -> Document:
        before, after = pet["status"], change.get("status", pet["status"])
        allowed = _PET_TRANSITIONS[before]
        if after not in (before, *allowed):
            can = ", ".join(allowed)
            raise _conflict(f"Animal {pet['id']} is {before}: it can become {can}, not {after}.")
        changed = {**pet, **change}
        self.pets[pet["id"]] = changed
        if changed != pet:
            self._note("updated", "pet", pet, changed)
        return changed

    def _note(
        self, what: str, noun: str, before: Document, after: Document, account: str | None = None
    ) -> None:
        """Add the event of a change: a new one's members, else those that changed."""
        names = [name for name in _SHOWN[noun] if before.get(name) != after.get(name)]
        data: Document = {"id": (before or after)["id"]}
        if what != "deleted":
            data |= {name: after.get(name) for name in names}
        if what != "created":
            data["previous"] = {name: before.get(name) for name in names}
        document = {
            "id": f"evt_{DATA_SET}_{len(self.events) + 1}",
            "type": f"{noun}.{what}",
            "timestamp": iso(self._clock.ms),
            "data": data,
        }
        self.events.append((document, account))


def _conflict(message: str) -> Refusal:
    return Refusal("conflict", message)


def _check_match(match: str | None, document: Document) -> None:
    """Raise precondition_failed unless the header If-Match has the tag of a document."""
    tag = tag_of(encode(document))
    tags = ["*"] if match is None else re.findall(r'(?:W/)?"[^"]*"|\*', match)
    if tag in tags or "*" in tags:
        return
    message = "It is not as If-Match says: somebody has changed it since. Nothing was changed; read it again."
    if f"W/{tag}" in tags:
        message = (
            "It is as If-Match says, but a proxy has made the tag weak, and a weak one never holds."
            " Nothing was changed; send the tag without W/."
        )
    raise Refusal("precondition_failed", message)
