"""Orders, for both databases. A change of an order locks the animal's row, then the order's: no deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from petstore.core.errors import Conflict, OrderNotFound
from petstore.core.idempotency import Creation, IdempotencyKey, fingerprint
from petstore.core.orders import (
    OPEN,
    RELEASED_AS,
    NewOrder,
    Order,
    OrderPage,
    OrderQuery,
    OrderStatus,
    PlacedOrder,
    ShipDate,
    changed,
    check_available,
    check_comment,
    check_customer,
    check_expected,
    members_of,
    placed,
    recorded_members_of,
)
from petstore.core.pets import Pet, PetChange, PetStatus
from petstore.core.preconditions import Tags, check_match
from petstore.transactions.idempotency import IdempotentRepository, create_once
from petstore.transactions.journal import record, record_changes
from petstore.transactions.pets import lock_pet, move_pet
from petstore.transactions.query import count_up_to, page_by_id
from petstore.transactions.rows import (
    ACCOUNT,
    ORDER,
    ORDER_IS_OPEN,
    placeholders,
    read_account,
    read_order,
    select,
)
from petstore.transactions.script import (
    CATALOGUE,
    NO_EFFECT,
    Script,
    Statement,
    read,
    reads,
    statement,
    write,
)

_ORDERS = f"SELECT {select(ORDER)} FROM orders"
# Orders of one account do not wait for each other, and its closing waits for them.
_CUSTOMER = statement(f"SELECT {select(ACCOUNT)} FROM accounts WHERE id = $1", lock=" FOR SHARE")
_BY_ID = statement(f"{_ORDERS} WHERE id = $1")
_LOCK = statement(f"{_ORDERS} WHERE id = $1", lock=" FOR UPDATE")
# The index open_orders_by_pet refuses a second open order of an animal, whatever the animal's row says.
_ADD = statement(
    f"INSERT INTO orders ({select(ORDER[1:])}) VALUES ({placeholders(len(ORDER) - 1)})"
    f" ON CONFLICT (pet_id) WHERE {ORDER_IS_OPEN} DO NOTHING RETURNING id"
)
_SALE_OF = statement(f"{_ORDERS} WHERE pet_id = $1 AND status = 'delivered' ORDER BY id DESC LIMIT 1")
_CHANGE = statement("UPDATE orders SET status = $2, ship_date_ms = $3 WHERE id = $1")
_COMMENT = statement("UPDATE orders SET comment = $2 WHERE id = $1")


def _get(order_id: int, account_id: int | None = None, how: Statement = _BY_ID) -> Script[Order]:
    """An order. Raises OrderNotFound, also for an order of another account, and for one that is gone since
    the read before: while the lock was waited for, staging may have been filled anew."""
    rows = yield how, (order_id,)
    if not rows or account_id not in (None, rows[0][1]):
        raise OrderNotFound(order_id)
    return read_order(rows[0])


class Orders(IdempotentRepository):
    """The orders of a store. With an `account_id`, orders of other accounts are not found.

    A change of an order changes its animal too: an open order's is `pending`, and in no other open order.
    """

    @read
    def page(self, query: OrderQuery) -> Script[OrderPage]:
        orders = [read_order(row) for row in (yield page_of(query))]
        return OrderPage(orders[: query.limit], len(orders) > query.limit)

    @read
    def count(self, query: OrderQuery) -> Script[int]:
        """How many orders match, up to COUNTED_MAX; see count_up_to."""
        queries = [replace(query, status=status) for status in OPEN] if query.open_only else [query]
        return count_up_to(lambda each: page_of(each, "SELECT id FROM orders"), queries)

    get = reads(_get)

    @read
    def sale_of(self, pet_id: int) -> Script[Order | None]:
        """The newest delivered order of an animal."""
        rows = yield _SALE_OF, (pet_id,)
        return read_order(rows[0]) if rows else None

    async def place(
        self, account_id: int, new: NewOrder, actor: str, idempotency_key: IdempotencyKey | None = None
    ) -> PlacedOrder:
        """Order an animal; the order is durable when this returns.

        Raises Conflict unless the animal is available and for a closed account, IdempotencyKeyInUse and
        IdempotencyKeyReused.
        """
        now_ms, pinned_ms = self._clock.now_ms(), self._clock.pinned_ms()

        def script() -> Script[int]:
            return _place(now_ms, account_id, new, actor)

        if idempotency_key is None:
            order_id, replayed = await self._database.write(script, CATALOGUE), False
        else:
            creation = Creation(idempotency_key, "order", fingerprint(new))
            order_id, replayed = await self._in_flight.carry_out(
                idempotency_key,
                lambda: self._database.start(lambda: create_once(creation, pinned_ms, script), CATALOGUE),
            )
        return PlacedOrder(placed(order_id, account_id, new, now_ms), replayed)

    @write(CATALOGUE)
    def change(
        self,
        now_ms: int,
        order_id: int,
        actor: str,
        *,
        status: OrderStatus | None = None,
        ship_date_ms: ShipDate = UNSET,
        account_id: int | None = None,
        expected: OrderStatus | None = None,
        match: Tags | None = None,
    ) -> Script[Order]:
        """Move an order and its animal, or give it a ship date. Raises OrderNotFound and Conflict; see
        core.orders.changed.

        An order with none of the tags `match` stays as it is: PreconditionFailed. So does one in another
        state than `expected`: Conflict.
        """
        pet_id = (yield from _get(order_id, account_id)).pet_id
        pet = yield from lock_pet(pet_id)
        before = yield from _get(order_id, how=_LOCK)
        check_match(match, members_of(before))
        check_expected(before, expected)
        after = changed(before, status, ship_date_ms, now_ms)
        if after != before:
            yield _CHANGE, (order_id, after.status.value, after.ship_date_ms)
            yield from _follow_change(now_ms, before, after, pet, actor)
        return after

    @write(NO_EFFECT)
    def comment(
        self,
        now_ms: int,
        order_id: int,
        comment: str | None,
        actor: str,
        *,
        expected: str | UnsetType | None = UNSET,
    ) -> Script[Order]:
        """Replace what staff wrote; None takes it away. Raises OrderNotFound, and Conflict where it is not as
        `expected`."""
        yield from _get(order_id)
        before = yield from _get(order_id, how=_LOCK)
        check_comment(before, comment, expected)
        after = replace(before, comment=comment)
        if after != before:
            yield _COMMENT, (order_id, comment)
            was, now = {"comment": before.comment}, {"comment": comment}
            yield from record_changes(now_ms, actor, "order", order_id, "changed", was, now)
        return after


def page_of(query: OrderQuery, table: str = _ORDERS) -> tuple[Statement, tuple[object, ...]]:
    """The statement of a page and its parameters; it reads one order too many."""
    statuses = (query.status,) if query.status else OPEN if query.open_only else ()
    equal: dict[str, Sequence[object]] = {}
    if query.account_id is not None:
        equal["account_id"] = (query.account_id,)
    if statuses:
        equal["status"] = [status.value for status in statuses]
    return page_by_id(table, query, equal)


def _place(now_ms: int, account_id: int, new: NewOrder, actor: str) -> Script[int]:
    """Order and reserve an animal; the order's identifier.

    Raises Conflict unless the animal is available, and for a closed account.
    """
    pet = check_available((yield from lock_pet(new.pet_id)), new.pet_id)
    ((*row,),) = yield _CUSTOMER, (account_id,)
    check_customer(read_account(row))
    order = placed(0, account_id, new, now_ms)  # the database gives the identifier
    texts = order.reference, order.comment
    rows = yield _ADD, (account_id, order.pet_id, order.status.value, None, now_ms, *texts)
    if not rows:  # a program of version 1.0.0 has made the animal available by hand
        raise Conflict(f"Animal {new.pet_id} is in another order.")
    order_id: int = rows[0][0]
    added = {"accountId": account_id, **recorded_members_of(order)}
    del added["id"]
    yield from record(now_ms, actor, "order", order_id, "placed", None, added)
    yield from move_pet(now_ms, pet, PetChange(status=PetStatus.PENDING), actor)
    return order_id


def _follow_change(now_ms: int, before: Order, after: Order, pet: Pet | None, actor: str) -> Script[None]:
    moved = after.status is not before.status
    action = after.status.value if moved else "changed"
    yield from record_changes(now_ms, actor, "order", after.id, action, members_of(before), members_of(after))
    # A sold animal is not the order's any more: a program of version 1.0.0 has sold it by hand.
    if moved and after.status in RELEASED_AS and pet is not None and pet.status is not PetStatus.SOLD:
        yield from move_pet(now_ms, pet, PetChange(status=RELEASED_AS[after.status]), actor)
