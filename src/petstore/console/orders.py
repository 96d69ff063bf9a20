"""Pages of orders: the list by state, and one order with its history. Moves: order_moves.py."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.history import history_of
from petstore.console.order_search import Search, read_search
from petstore.console.visit import View, Visit
from petstore.core.errors import AccountNotFound, Invalid, OrderNotFound, PetstoreError
from petstore.core.journal import About
from petstore.core.orders import ORDER_TRANSITIONS, Order, OrderPage, OrderQuery
from petstore.core.pets import PageQuery, Pet
from petstore.transactions.store import Parts

_ROWS = 50


class OrderPages:
    """`/orders`, and `/orders/7`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("GET", "/orders", self.list_orders),
            View("GET", "/orders/{order_id}", self.show),
        ]

    async def list_orders(self, visit: Visit) -> Response:
        """A list of orders: by default the waiting ones, oldest first."""
        status, faults, search, page = 200, dict[str, str](), Search(), OrderPage([], False)
        try:
            search = read_search(visit.query)
            if search.order_id is not None:
                return visit.redirect(f"orders/{(await self._store.orders.get(search.order_id)).id}")
            page = await self._page(search)
        except Invalid as error:
            status, faults = error.status, {error.field: error.message}
        except OrderNotFound as error:
            status, faults = error.status, {"id": error.message}
        except AccountNotFound as error:
            status, faults = error.status, {"account": error.message}
        return visit.page(
            "orders.html",
            "Orders",
            status,
            typed=visit.query,
            search=search,
            faults=faults,
            rows=await rows_of(self._store, page.orders),
            further=search.behind(page.orders[-1].id) if page.has_more else None,
        )

    async def _page(self, search: Search) -> OrderPage:
        account_id = None
        if search.account:
            account_id = (await self._store.accounts.find(search.account)).id
        return await self._store.orders.page(
            OrderQuery(
                account_id,
                _ROWS,
                search.status,
                after_id=search.after_id,
                newest_first=search.newest_first,
                open_only=search.open_only,
            )
        )

    async def show(self, visit: Visit) -> Response:
        return await show_order(self._store, visit, visit.id_of("order"))


async def rows_of(store: Parts, orders: list[Order]) -> list[tuple[Order, str, Pet | None]]:
    """Orders with their accounts' names and their animals; None for a removed animal."""
    names = await store.accounts.names({order.account_id for order in orders})
    pets = await _pets_of(store, orders)
    return [(order, names.get(order.account_id, ""), pets.get(order.pet_id)) for order in orders]


async def _pets_of(store: Parts, orders: list[Order]) -> dict[int, Pet]:
    ids = tuple({order.pet_id for order in orders})
    if not ids:
        return {}
    page = await store.pets.page(PageQuery(limit=len(ids), ids=ids))
    return {pet.id: pet for pet in page.pets}


async def show_order(
    store: Parts,
    visit: Visit,
    order_id: int,
    status: int = 200,
    *,
    refused: PetstoreError | None = None,
    ship_date: str = "",
    ship_date_fault: str = "",
) -> Response:
    """The page of an order with its possible moves. `refused` says why a move was refused.

    Raises OrderNotFound.
    """
    order = await store.orders.get(order_id)
    account = await store.accounts.find(str(order.account_id))
    about = About("order", str(order_id))
    return visit.page(
        "orders_one.html",
        f"Order {order_id}",
        refused.status if refused else status,
        order=order,
        account=account,
        pet=await store.pets.get(order.pet_id),
        moves=[move.value for move in ORDER_TRANSITIONS[order.status]],
        history=await history_of(store.journal, about, {"accountId": lambda _: account.name}),
        fault=refused.public_message if refused else "",
        ship_date=ship_date,
        ship_date_fault=ship_date_fault,
    )
