"""Moves of an order: approve, deliver, and cancel, which asks first."""

from __future__ import annotations

import re

from msgspec import UNSET
from starlette.responses import Response

from petstore.console.orders import show_order
from petstore.console.visit import INCOMPLETE_FORM, View, Visit
from petstore.core.errors import Conflict, InvalidBody
from petstore.core.moments import read_moment
from petstore.core.orders import OPEN, ORDER_STATUSES, OrderStatus, ShipDate
from petstore.core.people import Role
from petstore.transactions.store import Parts

# The value of an <input type="datetime-local">: seconds only if they are not 0. The year 26 is sent as 0026.
_SHIP_DATE = re.compile(
    r"[2-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?", re.ASCII
)
_MINUTE = len("2026-11-22T07:15")


class OrderMoves:
    """`/orders/7/approve`, `/deliver` and `/cancel`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("POST", "/orders/{order_id}/approve", self.approve, Role.STAFF),
            View("POST", "/orders/{order_id}/deliver", self.deliver, Role.STAFF),
            View("GET", "/orders/{order_id}/cancel", self.ask_cancellation, Role.STAFF),
            View("POST", "/orders/{order_id}/cancel", self.cancel, Role.STAFF),
        ]

    async def approve(self, visit: Visit) -> Response:
        return await self._move(visit, OrderStatus.APPROVED, "is approved.")

    async def deliver(self, visit: Visit) -> Response:
        typed = visit.form.get("ship_date", "").strip()
        ship_date_ms = read_ship_date(typed) if typed else UNSET
        if typed and ship_date_ms is None:
            return await show_order(
                self._store,
                visit,
                visit.id_of("order"),
                400,
                ship_date=typed,
                ship_date_fault="Expected a date and a time, such as 2026-11-22T07:15.",
            )
        return await self._move(visit, OrderStatus.DELIVERED, "is delivered.", ship_date_ms)

    async def ask_cancellation(self, visit: Visit) -> Response:
        order_id = visit.id_of("order")
        order = await self._store.orders.get(order_id)
        if order.status not in OPEN:
            refused = Conflict(f"Order {order_id} is {order.status}: it can't be cancelled any more.")
            return await show_order(self._store, visit, order_id, refused=refused)
        names = await self._store.accounts.names([order.account_id])
        return visit.page(
            "orders_cancel.html",
            f"Cancel order {order_id}?",
            order=order,
            account=names.get(order.account_id, ""),
            pet=await self._store.pets.get(order.pet_id),
        )

    async def cancel(self, visit: Visit) -> Response:
        return await self._move(visit, OrderStatus.CANCELLED, "is cancelled.")

    async def _move(
        self, visit: Visit, status: OrderStatus, outcome: str, ship_date_ms: ShipDate = UNSET
    ) -> Response:
        """Move the order if it still has the state that its page showed; else show its present state."""
        order_id = visit.id_of("order")
        expected = ORDER_STATUSES.get(visit.form.get("was", ""))
        if expected is None:
            raise InvalidBody(INCOMPLETE_FORM)
        try:
            await self._store.orders.change(
                order_id, visit.actor, status=status, ship_date_ms=ship_date_ms, expected=expected
            )
        except Conflict as error:
            return await show_order(self._store, visit, order_id, refused=error)
        return visit.redirect(f"orders/{order_id}", flash=f"Order {order_id} {outcome}")


def read_ship_date(typed: str) -> int | None:
    """The Unix time in milliseconds of a date and time in UTC. None if `typed` is not one."""
    if _SHIP_DATE.fullmatch(typed) is None:
        return None
    return read_moment(f"{typed}:00Z" if len(typed) == _MINUTE else f"{typed}Z")
