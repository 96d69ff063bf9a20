"""Pages of one order: with its history and its moves, and a new one."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET
from starlette.responses import Response

from petstore.console.categories import names_in
from petstore.console.choices import Choice, Unclear, read_account, read_number, read_pet
from petstore.console.confirmations import about_customer, about_ship_date
from petstore.console.formats import sentence
from petstore.console.idempotency import FormUsedUp, act_once, mark_of
from petstore.console.journal import history_of
from petstore.console.order_pages import rows_of
from petstore.console.times import read_time
from petstore.console.visit import INCOMPLETE_FORM, Faults, Handler, Question, View, Visit, asks_again
from petstore.core.accounts import Account
from petstore.core.errors import Conflict, Invalid, InvalidBody, NotFound
from petstore.core.fields import lines_of
from petstore.core.orders import (
    OPEN,
    ORDER_STATUSES,
    ORDER_TRANSITIONS,
    NewOrder,
    Order,
    OrderQuery,
    OrderStatus,
    ShipDate,
    check_customer,
)
from petstore.core.people import Role
from petstore.core.values import name_fault, remark_fault


async def show(visit: Visit) -> Response:
    """The page of an order with its possible moves. Raises OrderNotFound."""
    order = await visit.store.orders.get(visit.id_of("order"))
    account = await visit.store.accounts.get(order.account_id)
    return visit.page(
        "orders_one.html",
        f"Order {order.id} · {account.name}",
        order=order,
        account=account,
        pet=await visit.store.pets.get_or_none(order.pet_id),
        next=await _next_of(visit, order) if visit.may(Role.STAFF) else None,
        moves=[move.value for move in ORDER_TRANSITIONS[order.status]],
        history=await history_of(visit, "order", order.id, {"accountId": lambda _: account.name}),
        ship_date=visit.typed("ship_date") if isinstance(visit.error, Invalid | Question) else "",
        comment=visit.form.get("comment", order.comment or ""),
    )


async def show_note(visit: Visit) -> Response:
    """The delivery note, for paper. Raises OrderNotFound."""
    order = await visit.store.orders.get(visit.id_of("order"))
    return visit.page(
        "orders_note.html",
        f"Delivery note of order {order.id}",
        order=order,
        account=await visit.store.accounts.get(order.account_id),
        customer=await visit.store.customers.of(order.account_id),
        pet=await visit.store.pets.get_or_none(order.pet_id),
        names=await names_in(visit),
    )


async def _next_of(visit: Visit, order: Order) -> Order | None:
    """The oldest other order that waits for what was done with this one, else the oldest that waits."""
    before = OrderStatus.APPROVED if order.status is OrderStatus.DELIVERED else OrderStatus.PLACED
    for query in (OrderQuery(limit=2, status=before), OrderQuery(limit=2, open_only=True)):
        for each in (await visit.store.orders.page(query)).orders:
            if each.id != order.id:
                return each
    return None


@asks_again(show, Invalid, Conflict)
async def deliver(visit: Visit) -> Response:
    """Deliver an order at the time that was given, else at its ship date, else now."""
    order, typed = await visit.store.orders.get(visit.id_of("order")), visit.typed("ship_date")
    at_ms, remark = read_time("ship_date", typed, visit.zone) if typed else (order.ship_date_ms, "")
    if at_ms is not None and order.status in OPEN:
        visit.check_sure(about_ship_date(visit, order, at_ms))
    return await _move(visit, OrderStatus.DELIVERED, at_ms if typed else UNSET, remark)


@asks_again(show, Faults, Conflict)
async def comment(visit: Visit) -> Response:
    """Save what staff write, unless a colleague has changed it since the page was shown."""
    order_id, was = visit.id_of("order"), visit.form.get("was")
    if was is None:
        raise InvalidBody(INCOMPLETE_FORM)
    written = lines_of(visit.form.get("comment", "")) or None
    if written is not None and (fault := remark_fault(written)):
        raise Faults({"comment": sentence(fault)})
    await visit.store.orders.comment(order_id, written, visit.actor, expected=lines_of(was) or None)
    return visit.redirect(f"orders/{order_id}", flash="Saved.")


@asks_again(show, Conflict)
async def ask_cancellation(visit: Visit) -> Response:
    order = await visit.store.orders.get(visit.id_of("order"))
    if order.status not in OPEN:
        raise Conflict(f"Order {order.id} is {order.status}: it can't be cancelled any more.")
    ((_, account, pet),) = await rows_of(visit, [order])
    return visit.page(
        "orders_cancel.html", f"Cancel order {order.id}?", order=order, account=account, pet=pet
    )


async def _move(
    visit: Visit, status: OrderStatus, ship_date_ms: ShipDate = UNSET, remark: str = ""
) -> Response:
    """Move the order if it still has the status that its page showed. Raises Conflict otherwise."""
    order_id = visit.id_of("order")
    expected = ORDER_STATUSES.get(visit.form.get("was", ""))
    if expected is None:
        raise InvalidBody(INCOMPLETE_FORM)
    await visit.store.orders.change(
        order_id, visit.actor, status=status, ship_date_ms=ship_date_ms, expected=expected
    )
    return visit.redirect(f"orders/{order_id}", flash=f"Order {order_id} is {status}. {remark}".rstrip())


async def ask_new(visit: Visit) -> Response:
    """The form of a new order. Pages link to it with an animal or an account: `?pet=7&account=shop`."""
    asked, error = visit.query.get, visit.error
    typed = visit.sent(account=asked("account", ""), pet=asked("pet", ""), reference="", comment="")
    pet_id = read_number(typed["pet"])
    return visit.page(
        "orders_new.html",
        "Place an order",
        typed=typed,
        choices=error.choices if isinstance(error, Unclear) else {"account": [], "pet": []},
        pet=None if pet_id is None else await visit.store.pets.get_or_none(pet_id),
        order_id=None if pet_id is None else await visit.store.pets.open_order(pet_id),
        once=mark_of(visit),
    )


async def _read_new(visit: Visit) -> tuple[Account, NewOrder]:
    """Raises Faults and Unclear."""
    reference, faults = visit.typed("reference") or UNSET, dict[str, str]()
    choices: dict[str, list[Choice]] = {}
    if reference is not UNSET and (fault := name_fault(reference)):
        faults["reference"] = sentence(fault)
    comment = lines_of(visit.form.get("comment", "")) or UNSET
    if comment is not UNSET and (fault := remark_fault(comment)):
        faults["comment"] = sentence(fault)
    owner, pet_id = None, None
    try:
        owner = await read_account(visit, visit.typed("account"))
        check_customer(owner)
    except Unclear as unclear:
        choices |= unclear.choices
    except (Invalid, NotFound, Conflict) as error:
        faults["account"] = error.message
    try:
        pet_id = await read_pet(visit, visit.typed("pet"))
    except Unclear as unclear:
        choices |= unclear.choices
    except Invalid as error:
        faults["pet"] = error.message
    if choices:
        raise Unclear(choices, faults)
    if faults or owner is None or pet_id is None:
        raise Faults(faults)
    return owner, NewOrder(pet_id, reference=reference, comment=comment)


@asks_again(ask_new, Conflict, beside="pet")
@asks_again(ask_new, Faults, FormUsedUp)
async def place(visit: Visit) -> Response:
    """Sent twice, the form places one order."""
    orders, actor = visit.store.orders, visit.actor
    owner, new = await _read_new(visit)
    visit.check_sure(about_customer(owner))
    placed = await act_once(visit, owner.id, lambda once: orders.place(owner.id, new, actor, once))
    order_id = placed.order.id
    flash = f"Order {order_id} was placed already." if placed.replayed else f"Order {order_id} is placed."
    return visit.redirect(f"orders/{order_id}", flash=flash)


def _step(status: OrderStatus) -> Handler:
    return asks_again(show, Conflict)(partial(_move, status=status))


VIEWS = [
    View("GET", "/orders/new", ask_new, Role.STAFF),
    View("POST", "/orders/new", place, Role.STAFF),
    View("GET", "/orders/{order_id}", show),
    View("GET", "/orders/{order_id}/note", show_note),
    View("POST", "/orders/{order_id}/approve", _step(OrderStatus.APPROVED), Role.STAFF),
    View("POST", "/orders/{order_id}/deliver", deliver, Role.STAFF),
    View("POST", "/orders/{order_id}/comment", comment, Role.STAFF),
    View("GET", "/orders/{order_id}/cancel", ask_cancellation, Role.STAFF),
    View("POST", "/orders/{order_id}/cancel", _step(OrderStatus.CANCELLED), Role.STAFF),
]
