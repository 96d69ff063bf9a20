"""Orders: their shape, their statuses, and what each does to the animal."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from petstore.core.accounts import Account
from petstore.core.errors import Conflict
from petstore.core.fields import STAFF, Text
from petstore.core.members import Schema
from petstore.core.moments import iso_moment, moment_fault
from petstore.core.pets import Pet, PetStatus
from petstore.core.values import INT64_MAX, PAGE_LIMIT_DEFAULT, Name, Remark

QUANTITY = 1
# The ship date of a change: Unix ms, None to take it back, UNSET to leave it.
ShipDate = int | msgspec.UnsetType | None


class OrderStatus(StrEnum):
    """The status of an order."""

    PLACED = "placed"
    APPROVED = "approved"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


ORDER_STATUSES = {status.value: status for status in OrderStatus}

# Transitions, from -> to. Same to same is a no-op and not listed. A closed order goes nowhere any more.
ORDER_TRANSITIONS: dict[OrderStatus, tuple[OrderStatus, ...]] = {
    OrderStatus.PLACED: (OrderStatus.APPROVED, OrderStatus.CANCELLED),
    OrderStatus.APPROVED: (OrderStatus.DELIVERED, OrderStatus.CANCELLED),
    OrderStatus.DELIVERED: (),
    OrderStatus.CANCELLED: (),
}
# The statuses of an order that waits for staff, and holds its animal.
OPEN = tuple(status for status, allowed in ORDER_TRANSITIONS.items() if allowed)
# The status that a reserved animal gets with its order's.
RELEASED_AS = {OrderStatus.DELIVERED: PetStatus.SOLD, OrderStatus.CANCELLED: PetStatus.AVAILABLE}


class NewOrder(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An order of one animal. `reference` is a text of the customer's own, with the rule of a name. `comment`
    is a text of staff."""

    pet_id: Annotated[int, msgspec.Meta(ge=1, le=INT64_MAX)]
    quantity: Annotated[
        int, msgspec.Meta(ge=QUANTITY, le=QUANTITY, extra={"reason": "an animal is one animal"})
    ] = QUANTITY
    reference: Name | msgspec.UnsetType = msgspec.UNSET
    comment: Annotated[Remark | msgspec.UnsetType, STAFF] = msgspec.UNSET


Moment = Annotated[str, Text(moment_fault)]


class OrderChange(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The members of an order that change: at least one. `ship_date` is a moment (moments.py) or None."""

    status: OrderStatus | msgspec.UnsetType = msgspec.UNSET
    ship_date: Moment | msgspec.UnsetType | None = msgspec.UNSET


NEW_ORDER = Schema(NewOrder, "a new order")
ORDER_CHANGE = Schema(OrderChange, "a change of an order")


class Order(msgspec.Struct, frozen=True):
    """An order. `id` is positive, assigned once and never reused; times are Unix times.

    `reference` is the customer's own text, or None; it never changes. `comment` is a text of staff.
    """

    id: int
    account_id: int
    pet_id: int
    status: OrderStatus
    ship_date_ms: int | None
    created_at_ms: int
    reference: str | None = None
    comment: str | None = None

    @property
    def complete(self) -> bool:
        """Whether the animal was delivered."""
        return self.status is OrderStatus.DELIVERED


def members_of(order: Order) -> dict[str, Any]:
    """An order as clients see it: the interface's Order. Without a reference or a ship date it has no such
    member."""
    reference = {} if order.reference is None else {"reference": order.reference}
    ship_date = {} if order.ship_date_ms is None else {"shipDate": iso_moment(order.ship_date_ms)}
    return {
        "id": order.id,
        "petId": order.pet_id,
        "quantity": QUANTITY,
        **reference,
        **ship_date,
        "status": order.status.value,
        "complete": order.complete,
    }


def recorded_members_of(order: Order) -> dict[str, Any]:
    """What the journal keeps of an order."""
    comment = {} if order.comment is None else {"comment": order.comment}
    return {**members_of(order), **comment}


def placed(order_id: int, account_id: int, new: NewOrder, now_ms: int) -> Order:
    """The order as it is placed."""
    reference, comment = (None if text is msgspec.UNSET else text for text in (new.reference, new.comment))
    return Order(order_id, account_id, new.pet_id, OrderStatus.PLACED, None, now_ms, reference, comment)


def check_available(pet: Pet | None, pet_id: int) -> Pet:
    """The animal, if it can be ordered. Raises Conflict."""
    if pet is None:
        raise Conflict(f"There is no animal {pet_id} to order.")
    if pet.status is not PetStatus.AVAILABLE:
        raise Conflict(f"Animal {pet_id} is {pet.status}: only one that is available can be ordered.")
    return pet


def check_customer(account: Account) -> None:
    """Raise Conflict for an account that gets no orders any more."""
    if account.closed_at_ms is not None:
        raise Conflict(f"Account {account.name!r} is closed; place the order for another one.")


def check_expected(order: Order, expected: OrderStatus | None) -> None:
    """Raise Conflict when somebody has moved the order since a person saw it as `expected`."""
    if expected not in (None, order.status):
        raise Conflict(
            f"Order {order.id} is {order.status} by now: somebody has moved it since it was {expected}."
            " Nothing was changed."
        )


def check_comment(order: Order, comment: str | None, expected: str | msgspec.UnsetType | None) -> None:
    """Raise Conflict when somebody has changed the comment since a person saw it as `expected`, to another
    one than theirs."""
    if expected is not msgspec.UNSET and order.comment not in (expected, comment):
        raise Conflict(f"Somebody has changed the comment of order {order.id} meanwhile. Yours is not saved.")


def changed(order: Order, status: OrderStatus | None, ship_date_ms: ShipDate, now_ms: int) -> Order:
    """The order with another status or ship date; None leaves the status as it is.

    A delivery without a ship date takes place now. Raises Conflict, whose message names the allowed statuses.
    """
    after = order.status if status is None else status
    allowed = ORDER_TRANSITIONS[order.status]
    if after is not order.status and after not in allowed:
        can = (
            f"it can become {' or '.join(allowed)}, not" if allowed else "in its last state, it can't become"
        )
        raise Conflict(f"Order {order.id} is {order.status}: {can} {after}.")
    if after is OrderStatus.CANCELLED and isinstance(ship_date_ms, int):
        raise Conflict(f"Order {order.id}: a cancelled order gets no ship date.")
    if ship_date_ms is None and order.complete:
        raise Conflict(f"Order {order.id}: a delivered order keeps a ship date; send another one.")
    if ship_date_ms is msgspec.UNSET:
        ship_date_ms = order.ship_date_ms
    if ship_date_ms is None and after is OrderStatus.DELIVERED:
        ship_date_ms = now_ms
    return msgspec.structs.replace(order, status=after, ship_date_ms=ship_date_ms)


class OrderQuery(msgspec.Struct, frozen=True):
    """The orders to list: ascending by id, or the newest first, at most `limit`.

    `account_id`, `status` and `ids` combine; None: no such filter. `open_only`: without a status, those in
    one of OPEN. `after_id`: the last order of the page before; 0 for the first page.
    """

    account_id: int | None = None
    limit: int = PAGE_LIMIT_DEFAULT
    status: OrderStatus | None = None
    ids: tuple[int, ...] | None = None
    after_id: int = 0
    newest_first: bool = False
    open_only: bool = False


class OrderPage(msgspec.Struct, frozen=True):
    """`has_more`: when the page was read, there were matching orders after it."""

    orders: list[Order]
    has_more: bool


class PlacedOrder(msgspec.Struct, frozen=True):
    """A new order; `replayed` when an earlier request with the same Idempotency-Key placed it.

    A replay shows the order as it was placed, even if it has changed since.
    """

    order: Order
    replayed: bool
