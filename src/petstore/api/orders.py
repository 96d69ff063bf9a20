"""The operations on orders: listOrders, placeOrder, cancelOrder, updateOrder."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.paging import PageLinks, bind, read_list, read_one_of, read_position, tag_of_page
from petstore.api.pipeline.request import Parameters, Request, parameters_of
from petstore.api.pipeline.response import Response, make_created, make_representation, make_response
from petstore.core.errors import Forbidden
from petstore.core.keys import Access, Caller
from petstore.core.moments import read_moment
from petstore.core.orders import NEW_ORDER, ORDER_CHANGE, ORDER_STATUSES, OrderQuery, OrderStatus, members_of
from petstore.core.preconditions import encode, tag_of
from petstore.transactions.accounts import Accounts
from petstore.transactions.orders import Orders

ORDER_PARAMETERS = ("limit", "cursor", "after", "status", "id", "scope")
_SCOPES = {"own": False, "all": True}  # whether the orders of all accounts are meant


class OrderOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId.

    Another account's order is found by updateOrder, and by listOrders with `scope=all`.
    """

    orders: Orders
    accounts: Accounts
    reference_base: str
    body_timeout_seconds: float

    async def list_orders(self, request: Request, caller: Caller) -> Response:
        """GET /store/orders: a page of orders in ascending order of id, the account's or all accounts'."""
        query = read_order_query(parameters_of(request.query), caller)
        page = await self.orders.page(query)
        orders = shown = [members_of(order) for order in page.orders]
        if query.account_id is None:
            names = await self.accounts.names({order.account_id for order in page.orders})
            shown = [
                {**members, "account": names[order.account_id]}
                for members, order in zip(orders, page.orders, strict=True)
            ]
        last_id = page.orders[-1].id if page.has_more else None
        links = links_of(self.reference_base, query.limit, query.account_id, query.status, query.ids).after(
            last_id
        )
        body = encode(shown)
        answer = make_representation(body, tag_of_page(query.ids, orders, body, links), (b"link", links))
        if query.account_id is None and len(query.ids or ()) == 1:  # the order's own tag leaves out the name
            return replace(answer, tag=b"")
        return answer

    async def place_order(self, request: Request, caller: Caller) -> Response:
        """POST /store/orders: 201 once the order is durable and its animal reserved."""
        check_body_headers(request)
        idempotency_key = request.idempotency_key(caller.account_id)
        new = NEW_ORDER.read(await read_body(request, self.body_timeout_seconds))
        placed = await self.orders.place(caller.account_id, new, caller.actor, idempotency_key)
        body = encode(members_of(placed.order))
        location = f"{self.reference_base}/store/orders?id={placed.order.id}"
        return make_created(body, tag_of(body), location, replayed=placed.replayed)

    async def cancel_order(self, request: Request, caller: Caller) -> Response:
        """DELETE /store/orders/{orderId}: 204, also for an order that is cancelled already."""
        match = request.match()
        await self.orders.change(
            request.required_id("order"),
            caller.actor,
            status=OrderStatus.CANCELLED,
            account_id=caller.account_id,
            match=match,
        )
        return make_response(204, None)

    async def update_order(self, request: Request, caller: Caller) -> Response:
        """PATCH /store/orders/{orderId}: any account's order."""
        check_body_headers(request, patch=True)
        match = request.match()
        change = ORDER_CHANGE.read(await read_body(request, self.body_timeout_seconds))
        order = await self.orders.change(
            request.required_id("order"),
            caller.actor,
            status=None if change.status is UNSET else change.status,
            ship_date_ms=read_moment(change.ship_date)
            if isinstance(change.ship_date, str)
            else change.ship_date,
            match=match,
        )
        body = encode(members_of(order))
        return make_response(200, body, (b"etag", tag_of(body)))


def read_order_query(parameters: Parameters, caller: Caller) -> OrderQuery:
    """The parameters of GET /store/orders.

    Raises InvalidParameter, with a message that names the parameter and the values that it takes, and
    Forbidden for `scope=all` without a key of the level manage.
    """
    given, ids, limit, status = read_list(parameters, ORDER_PARAMETERS, ORDER_STATUSES)
    account_id: int | None = caller.account_id
    if read_one_of(_SCOPES, given, "scope", "own or all"):
        if not caller.access.includes(Access.MANAGE):
            raise Forbidden(
                f"scope=all needs a key of level manage; this key has {caller.access}."
                " Ask the operator for one."
            )
        account_id = None
    after_id = read_position(given, bind_orders(account_id, status, ids))
    return OrderQuery(account_id, limit, status, ids, after_id)


@lru_cache(maxsize=256)
def links_of(
    base: str, limit: int, account_id: int | None, status: OrderStatus | None, ids: tuple[int, ...] | None
) -> PageLinks:
    """The links of an account's list of orders, or of the list of all."""
    more = "" if account_id is not None else "&scope=all"
    return PageLinks(f"{base}/store/orders", limit, status, ids, more, bind_orders(account_id, status, ids))


@lru_cache(maxsize=256)
def bind_orders(account_id: int | None, status: OrderStatus | None, ids: tuple[int, ...] | None) -> int:
    """What binds a cursor to an account's list of orders, or to the list of all."""
    listed = ",".join(map(str, ids)) if ids is not None else "*"
    return bind(f"orders {account_id or '*'}|{status or '*'}|{listed}")
