"""`petstore orders`: orders for staff, under the same rules as the interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.groups import LazyGroup
from petstore.cli.output import Record, echo_err, moment, write_record, write_records
from petstore.cli.types import ACCOUNT, ID, Given, checked_name, limit_option, read_remark, read_ship_date
from petstore.core.orders import QUANTITY, NewOrder, Order, OrderPage, OrderQuery, OrderStatus, ShipDate

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_ORDER_ID = click.argument("order_id", type=ID, metavar="ID")


@click.group(cls=LazyGroup)
def orders() -> None:
    """The orders of all accounts: place, approve, deliver, cancel."""


@orders.offers(
    "list",
    "petstore orders list --status placed              # what is to be approved",
    "petstore orders list --account shop --after 100",
)
@click.option(
    "--status",
    type=click.Choice([status.value for status in OrderStatus]),
    help="Only orders of this status.",
)
@click.option("--account", type=ACCOUNT, help="Only of this account.")
@limit_option
@click.option("--after", type=ID, metavar="ID", help="Only orders with a greater id.")
def list_orders(
    session: Session, status: str | None, account: str | None, limit: int, after: int | None, as_json: bool
) -> None:
    """List orders in the order of their ids.

    When there are more, standard error says how to go on.
    """

    async def read(store: Store) -> tuple[OrderPage, dict[int, str]]:
        account_id = None if account is None else (await store.accounts.find(account)).id
        wanted = OrderStatus(status) if status else None
        page = await store.orders.page(OrderQuery(account_id, limit, wanted, after_id=after or 0))
        return page, {account.id: account.name for account in await store.accounts.all()}

    page, names = read_store(session, read)
    write_records(
        [_record(order, names[order.account_id]) for order in page.orders],
        {
            "ID": "id",
            "ACCOUNT": "account",
            "ANIMAL": "petId",
            "STATUS": "status",
            "PLACED": "createdAt",
            "SHIP DATE": "shipDate",
            "REFERENCE": "reference",
        },
        as_json,
        empty="No orders match.",
    )
    if page.has_more:
        echo_err(f"There are more: add --after {page.orders[-1].id}")


@orders.offers("show", "petstore orders show 7")
@_ORDER_ID
def show_order(session: Session, order_id: int, as_json: bool) -> None:
    """Show an order."""

    async def read(store: Store) -> Record:
        return await _recorded(store, await store.orders.get(order_id))

    _write(read_store(session, read), as_json)


@orders.offers("place", "petstore orders place 7 --account shop --reference PO-4711")
@click.argument("pet_id", type=ID, metavar="ANIMAL")
@click.option("--account", type=ACCOUNT, required=True, help="Whose order it is.")
@click.option(
    "--reference", callback=checked_name, metavar="TEXT", help="The customer's own text: 1 to 255 characters."
)
@click.option("--comment", callback=read_remark, metavar="TEXT", help="For staff: at most 2,000 characters.")
def place_order(
    session: Session, /, pet_id: int, account: str, reference: str | None, comment: Given[str], as_json: bool
) -> None:
    """Order an animal for an account.

    ANIMAL is the id of an animal that is available; it becomes pending.
    """
    new = NewOrder(pet_id, reference=UNSET if reference is None else reference, comment=comment or UNSET)

    async def place(store: Store) -> Record:
        owner = await store.accounts.find(account)
        placed = await store.orders.place(owner.id, new, session.actor)
        return _record(placed.order, owner.name)

    _write(with_store(session, place), as_json)


@orders.offers("comment", 'petstore orders comment 7 "Comes on Friday."')
@_ORDER_ID
@click.argument("text", callback=read_remark)
def comment_order(session: Session, order_id: int, text: str | None, as_json: bool) -> None:
    """Write a comment about an order, in place of an earlier one.

    TEXT is at most 2,000 characters; an empty one takes the comment away. Only staff see it.
    """

    async def comment(store: Store) -> Record:
        return await _recorded(store, await store.orders.comment(order_id, text, session.actor))

    _write(with_store(session, comment), as_json)


@orders.offers("approve", "petstore orders approve 7")
@_ORDER_ID
def approve_order(session: Session, order_id: int, as_json: bool) -> None:
    """Approve a placed order."""
    _move(session, order_id, OrderStatus.APPROVED, as_json)


@orders.offers(
    "deliver", "petstore orders deliver 7", "petstore orders deliver 7 --ship-date 2026-11-21T08:30:00+01:00"
)
@_ORDER_ID
@click.option(
    "--ship-date",
    callback=read_ship_date,
    metavar="TIME",
    help="When it was handed over, such as 2026-11-21T08:30:00Z. Default: the order's own, or now.",
)
def deliver_order(session: Session, order_id: int, ship_date: int | None, as_json: bool) -> None:
    """Deliver an approved order; its animal is sold."""
    _move(session, order_id, OrderStatus.DELIVERED, as_json, UNSET if ship_date is None else ship_date)


@orders.offers("cancel", "petstore orders cancel 7")
@_ORDER_ID
def cancel_order(session: Session, order_id: int, as_json: bool) -> None:
    """Cancel an order that is not delivered.

    Its animal is available again. Cancelling a cancelled order changes nothing.
    """
    _move(session, order_id, OrderStatus.CANCELLED, as_json)


def _move(
    session: Session, order_id: int, status: OrderStatus, as_json: bool, ship_date_ms: ShipDate = UNSET
) -> None:
    async def move(store: Store) -> Record:
        order = await store.orders.change(order_id, session.actor, status=status, ship_date_ms=ship_date_ms)
        return await _recorded(store, order)

    _write(with_store(session, move), as_json)


async def _recorded(store: Store, order: Order) -> Record:
    return _record(order, (await store.accounts.get(order.account_id)).name)


def _record(order: Order, account: str) -> Record:
    """An order as commands show it."""
    return {
        "id": order.id,
        "account": account,
        "petId": order.pet_id,
        "quantity": QUANTITY,
        "reference": order.reference,
        "comment": order.comment,
        "status": order.status.value,
        "complete": order.complete,
        "createdAt": moment(order.created_at_ms),
        "shipDate": moment(order.ship_date_ms),
    }


def _write(record: Record, as_json: bool) -> None:
    fields = {
        "order": record["id"],
        "account": record["account"],
        "animal": record["petId"],
        "status": record["status"],
        "placed": record["createdAt"],
        "ship date": record["shipDate"],
        "reference": record["reference"],
        "comment": record["comment"],
    }
    write_record(record, fields, as_json)
