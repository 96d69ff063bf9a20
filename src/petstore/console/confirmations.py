"""What is allowed and unusual: a form asks about it first, and does it when its reader says so.

Each doubt is a sentence that ends with a question; empty where there is none. See Visit.check_sure.
"""

from __future__ import annotations

from petstore.console.formats import moment_text
from petstore.console.visit import Visit
from petstore.core.accounts import Account
from petstore.core.durations import DAY_MS, MINUTE_MS
from petstore.core.orders import Order
from petstore.core.pets import PetStatus

_CLOCKS_DIFFER_MS = 5 * MINUTE_MS
# An order may be typed at the end of the day on which the animal was taken home.
_TYPED_LATER_MS = DAY_MS


def about_ship_date(visit: Visit, order: Order, ship_date_ms: int) -> str:
    """About a delivery at a Unix time."""
    text = moment_text(ship_date_ms, visit.zone)
    if ship_date_ms > visit.now_ms + _CLOCKS_DIFFER_MS:
        return f"{text} is in the future. Is that the ship date?"
    if ship_date_ms < order.created_at_ms - _TYPED_LATER_MS:
        placed = moment_text(order.created_at_ms, visit.zone)
        return f"{text} is before the order was placed, {placed}. Is that the ship date?"
    return ""


def about_customer(account: Account) -> str:
    """About an order for an account."""
    if account.suspended_at_ms is None:
        return ""
    return f"Account {account.name} is suspended: its keys are refused. Place an order for it?"


async def about_status(visit: Visit, pet_id: int, before: PetStatus, after: PetStatus) -> str:
    """About a change of an animal's status."""
    if (before, after) != (PetStatus.SOLD, PetStatus.AVAILABLE):
        return ""
    order = await visit.store.orders.sale_of(pet_id)
    if order is None:
        return ""
    when = "" if order.ship_date_ms is None else f" on {moment_text(order.ship_date_ms, visit.zone)}"
    return f"Order {order.id} sold animal {pet_id}{when}. Make it available again?"


def pending_remark(status: PetStatus) -> str:
    """What is said of an animal that no order holds, after it got its status."""
    if status is not PetStatus.PENDING:
        return ""
    return " No order holds it: it stays pending until somebody changes that."
