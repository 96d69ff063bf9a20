"""The form of a new order. Sent twice, it places one order."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.idempotency import FormUsedUp, act_once, mark_of
from petstore.console.visit import View, Visit
from petstore.core.errors import AccountNotFound, Conflict
from petstore.core.orders import NewOrder, check_customer
from petstore.core.people import Role
from petstore.core.values import read_id
from petstore.transactions.store import Parts


class NewOrderPages:
    """`/orders/new`. An animal's page links to it with `?pet=7`, an account's with `?account=shop`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("GET", "/orders/new", self.new, Role.STAFF),
            View("POST", "/orders/new", self.place, Role.STAFF),
        ]

    async def new(self, visit: Visit) -> Response:
        return await self._page(visit, visit.query.get("account", ""), visit.query.get("pet", ""))

    async def place(self, visit: Visit) -> Response:
        account, pet = visit.form.get("account", "").strip(), visit.form.get("pet", "").strip()
        pet_id, orders = read_id(pet), self._store.orders
        faults = {}
        if not account:
            faults["account"] = "Whose order is it? Give an account's name or its number."
        if pet_id is None:
            faults["pet"] = "Expected an animal's number, such as 7."
        if faults or pet_id is None:
            return await self._page(visit, account, pet, 400, faults)
        try:
            owner = await self._store.accounts.find(account)
            check_customer(owner)
        except (AccountNotFound, Conflict) as error:
            return await self._page(visit, account, pet, error.status, {"account": error.message})
        try:
            placed = await act_once(
                visit, owner.id, lambda once: orders.place(owner.id, NewOrder(pet_id), visit.actor, once)
            )
        except FormUsedUp as error:
            return await self._page(visit, account, pet, 409, {"": error.message})
        except Conflict as error:
            return await self._page(visit, account, pet, 409, {"pet": error.message})
        order_id = placed.order.id
        flash = f"Order {order_id} was placed already." if placed.replayed else f"Order {order_id} is placed."
        return visit.redirect(f"orders/{order_id}", flash=flash)

    async def _page(
        self, visit: Visit, account: str, pet: str, status: int = 200, faults: dict[str, str] | None = None
    ) -> Response:
        pet_id, faults = read_id(pet), faults or {}
        return visit.page(
            "orders_new.html",
            "Place an order",
            status,
            account=account,
            pet_id=pet,
            pet=None if pet_id is None else await self._store.pets.get(pet_id),
            order_id=None if pet_id is None else await self._store.pets.open_order(pet_id),
            faults=faults,
            once=mark_of(visit, used_up="" in faults),
        )
