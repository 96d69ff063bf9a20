"""The list of orders by status."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.lists import RowPage, find_matches, find_page, links
from petstore.console.rows import ORDERS
from petstore.console.several import ROWS_MAX
from petstore.console.visit import View, Visit, address
from petstore.core.errors import Invalid, NotFound, OrderNotFound
from petstore.core.orders import OPEN, ORDER_STATUSES, Order, OrderQuery, OrderStatus
from petstore.core.pets import Pet, PetQuery
from petstore.core.search import SearchKind, id_in
from petstore.transactions.search import SearchQuery

# The lists by status: parameter and title. The first one has the orders that wait for staff.
TABS = (
    ("", "Waiting"),
    *((status.value, status.value.capitalize()) for status in OrderStatus),
    ("all", "All"),
)
_FIRST = ("", "newest", "oldest")


async def show_all(visit: Visit) -> Response:
    """A list of orders: by default the waiting ones, oldest first."""
    asked = dict.fromkeys(("q", "state", "account", "first"), "")
    found, count = RowPage[Order](), ""
    try:
        asked = read_search(visit)
        if order_id := id_in(asked["q"]):
            with suppress(OrderNotFound):  # then it may be a part of a reference
                return visit.redirect(f"orders/{(await visit.store.orders.get(order_id)).id}")
        query = await query_of(visit, asked)
        if asked["q"]:
            found = await find_orders(visit, asked["q"], replace(query, after_id=visit.query_id("after")))
        else:
            find = partial(find_orders, visit, "")
            found, count = await find_page(visit, query, find, visit.store.orders.count)
    except (Invalid, NotFound) as error:
        visit.refuse(error, "account")
    account, newest_first = asked["account"], _is_newest_first(asked)
    other_way = address("orders", {**asked, "first": "oldest" if newest_first else "newest"})
    return visit.page(
        "orders.html",
        "Orders",
        typed=visit.query,
        asked=asked,
        newest_first=newest_first,
        sorts={"#Order": (other_way, "descending" if newest_first else "ascending")},
        tabs=[
            (s, name, address("orders", {"q": asked["q"], "state": s, "account": account}))
            for s, name in TABS
        ],
        rows=await rows_of(visit, found.rows),
        count=count,
        found=found,
        several=ORDERS,
        clear=address("orders", {"state": asked["state"]}) if account or asked["q"] or asked["first"] else "",
        **links("orders", asked, found),
    )


def read_search(visit: Visit) -> dict[str, str]:
    """The filters. Raises Invalid, which names the field."""
    asked = visit.asked("q", "state", "account", "first")
    if asked["state"] not in dict(TABS):
        raise Invalid("state", f"There is no list of {asked['state']!r} orders; choose one of the lists.")
    if asked["first"] not in _FIRST:
        raise Invalid("first", "Choose which orders come first.")
    return asked


def _is_newest_first(asked: Mapping[str, str]) -> bool:
    """The order that was asked for; else open orders oldest first, others newest first."""
    is_open = asked["state"] == "" or asked["state"] in OPEN
    return asked["first"] == "newest" if asked["first"] else not is_open


async def query_of(visit: Visit, asked: Mapping[str, str]) -> OrderQuery:
    """Raises AccountNotFound."""
    account = await visit.store.accounts.find(asked["account"]) if asked["account"] else None
    return OrderQuery(
        account.id if account else None,
        ROWS_MAX,
        ORDER_STATUSES.get(asked["state"]),
        newest_first=_is_newest_first(asked),
        open_only=asked["state"] == "",
    )


async def find_orders(visit: Visit, text: str, query: OrderQuery) -> RowPage[Order]:
    """One page of those with the words in their references, of which there are none before the index is made;
    without a text, of all."""
    if not text:
        page = await visit.store.orders.page(query)
        return RowPage(page.orders, not query.after_id, next_start=page.orders[-1].id if page.has_more else 0)

    async def read(ids: tuple[int, ...]) -> list[Order]:
        return (await visit.store.orders.page(replace(query, ids=ids, limit=len(ids), after_id=0))).orders

    statuses = (query.status,) if query.status else OPEN if query.open_only else ()
    conditions: dict[str, object] = {"status": tuple(status.value for status in statuses)} if statuses else {}
    if query.account_id is not None:
        conditions["account_id"] = query.account_id
    wanted = SearchQuery(SearchKind.ORDERS, text, query.limit, query.after_id, query.newest_first, conditions)
    return await find_matches(visit, wanted, read)


async def rows_of(visit: Visit, orders: list[Order]) -> list[tuple[Order, str, Pet | None]]:
    """Orders with their accounts' names and their animals; None for a removed animal."""
    names = await visit.store.accounts.names({order.account_id for order in orders})
    ids = tuple({order.pet_id for order in orders})
    found = (await visit.store.pets.page(PetQuery(limit=len(ids), ids=ids))).pets if ids else []
    pets = {pet.id: pet for pet in found}
    return [(order, names.get(order.account_id, ""), pets.get(order.pet_id)) for order in orders]


VIEWS = [View("GET", "/orders", show_all)]
