"""The operations on orders: who sees which, what each answers, and what becomes of the animal."""

from __future__ import annotations

from typing import Any

import pytest

from petstore.core.keys import Access
from petstore.core.moments import iso_moment
from tests.api.test_paging import flat, walk
from tests.support.clock import ManualClock
from tests.support.service import Answer, Pairs, Shop

ORDERS = "/v1/store/orders"


async def add_pets(shop: Shop, count: int) -> None:
    for number in range(1, count + 1):
        await shop.post({"name": f"pet {number}", "categoryId": 1})


async def place(shop: Shop, pet_id: int, headers: Pairs = (), key: str | None = None) -> Answer:
    return await shop.send("POST", ORDERS, {"petId": pet_id}, headers, key=key)


async def patch(shop: Shop, order_id: object, document: object, key: str | None = None) -> Answer:
    return await shop.send("PATCH", f"{ORDERS}/{order_id}", document, key=key)


def status_of(shop: Shop, pet_id: int) -> str:
    return {row[0]: str(row[3]) for row in shop.pets()}[pet_id]


def shown(order_id: int, pet_id: int, status: str = "placed", **more: object) -> dict[str, Any]:
    complete = status == "delivered"
    return {"id": order_id, "petId": pet_id, "quantity": 1, "status": status, "complete": complete, **more}


async def three_orders(shop: Shop) -> str:
    """An order of the shop's account, of another one, and of its own again; the other one's key."""
    other, _ = await shop.open_account("other")
    await add_pets(shop, 3)
    for pet_id, key in ((1, None), (2, other), (3, None)):
        await place(shop, pet_id, key=key)
    return other


class TestListOrders200:
    """GET /store/orders."""

    async def test_the_body_is_a_bare_array_of_the_accounts_orders(self, shop: Shop) -> None:
        """Ascending by id; those of other accounts are not in it, also for a manage key, and also by id."""
        other = await three_orders(shop)
        mine = [shown(1, 1), shown(3, 3)]
        assert (await shop.ask("GET", ORDERS)).json() == mine
        assert (await shop.ask("GET", f"{ORDERS}?id=3&id=2&id=1&id=99")).json() == mine
        assert (await shop.ask("GET", f"{ORDERS}?id=3,2,1,99")).json() == mine
        assert (await shop.ask("GET", ORDERS, key=other)).json() == [shown(2, 2)]
        reader, _ = await shop.open_account("reader", access=Access.READ)
        assert (await shop.ask("GET", f"{ORDERS}?id=1&id=2", key=reader)).json() == []

    async def test_a_walk_with_a_filter(self, shop: Shop) -> None:
        """`Link` keeps limit and filters until the last page."""
        await add_pets(shop, 6)
        for pet_id in range(1, 7):
            await place(shop, pet_id)
        await patch(shop, 3, {"status": "approved"})
        target = f"{ORDERS}?limit=2&status=placed&id=1&id=2&id=3&id=4&id=6"
        assert flat(await walk(shop, target, first=target)) == [1, 2, 4, 6]

    async def test_of_a_delivered_order(self, shop: Shop, clock: ManualClock) -> None:
        """The members in the documented order, with the ship date in UTC."""
        await add_pets(shop, 1)
        await place(shop, 1)
        await patch(shop, 1, {"status": "approved", "shipDate": "2026-11-21T09:30:00+01:00"})
        await patch(shop, 1, {"status": "delivered"})
        assert (await shop.ask("GET", ORDERS)).body == (
            b'[{"id":1,"petId":1,"quantity":1,"shipDate":"2026-11-21T08:30:00.000Z",'
            b'"status":"delivered","complete":true}]'
        )


async def test_a_cursor_belongs_to_its_account_and_list(shop: Shop) -> None:
    """A cursor of orders is refused for another account, filter or list, and one of animals for orders."""
    other, _ = await shop.open_account("other")
    await add_pets(shop, 2)
    for pet_id in (1, 2):
        await place(shop, pet_id)
    target = (await shop.ask("GET", f"{ORDERS}?limit=1")).links["next"]
    cursor = target.partition("cursor=")[2]
    of_pets = (await shop.ask("GET", "/v1/pets?limit=1")).links["next"].partition("cursor=")[2]
    assert (await shop.ask("GET", target)).json() == [shown(2, 2)]
    assert (await shop.ask("GET", target, key=other)).status == 400
    for wrong in (
        f"{ORDERS}?status=placed&cursor={cursor}",
        f"/v1/pets?cursor={cursor}",
        f"{ORDERS}?cursor={of_pets}",
    ):
        assert (await shop.ask("GET", wrong)).status == 400


class TestPlaceOrder201:
    """POST /store/orders."""

    @pytest.mark.parametrize("document", [{"petId": 1}, {"petId": 1, "quantity": 1}])
    async def test_the_animal_is_reserved(self, shop: Shop, document: dict[str, int]) -> None:
        """The order with its identifier, and where it can be read; the journal names the key."""
        await add_pets(shop, 1)
        answer = await shop.send("POST", ORDERS, document)
        assert answer.status == 201
        assert answer.body == b'{"id":1,"petId":1,"quantity":1,"status":"placed","complete":false}'
        assert answer.headers["location"] == f"{ORDERS}?id=1"
        assert status_of(shop, 1) == "pending"
        assert (await shop.ask("GET", answer.headers["location"])).json() == [answer.json()]

    async def test_a_replay_shows_the_order_as_it_was_placed(self, shop: Shop) -> None:
        """A replay has the first bytes and Location, and a mark, although the order has moved on."""
        await add_pets(shop, 1)
        first = await place(shop, 1, [("idempotency-key", "k")])
        await patch(shop, 1, {"status": "approved"})
        again = await place(shop, 1, [("idempotency-key", "k")])
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["location"] == first.headers["location"]
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert (await shop.ask("GET", ORDERS)).json() == [shown(1, 1, "approved")]

    async def test_a_reference_comes_back_as_it_was_sent(self, shop: Shop) -> None:
        """Every operation that shows the order has it, and its event, after the quantity."""
        reference = " \u202e\u2028 <b>".ljust(255, "\U0001f415")
        await add_pets(shop, 1)
        answer = await shop.send("POST", ORDERS, {"petId": 1, "reference": reference})
        assert (answer.status, answer.json()) == (201, shown(1, 1, reference=reference))
        assert answer.body.startswith(b'{"id":1,"petId":1,"quantity":1,"reference":')
        assert (await patch(shop, 1, {"status": "approved"})).json()["reference"] == reference
        for scope in ("own", "all"):
            [listed] = (await shop.ask("GET", f"{ORDERS}?scope={scope}")).json()
            assert listed["reference"] == reference
        [event] = (await shop.ask("GET", "/v1/events?type=order.created")).json()
        assert event["data"] == shown(1, 1, reference=reference)


async def test_a_cancelled_animal_is_available_again(shop: Shop) -> None:
    """DELETE: no body; the animal is available again. Once more: 204, and nothing changes (I12)."""
    await add_pets(shop, 1)
    await place(shop, 1)
    answer = await shop.ask("DELETE", f"{ORDERS}/1")
    assert (answer.status, answer.body) == (204, b"")
    assert status_of(shop, 1) == "available"
    assert (await shop.ask("GET", ORDERS)).json() == [shown(1, 1, "cancelled")]
    before = shop.fingerprint()
    assert (await shop.ask("DELETE", f"{ORDERS}/1")).status == 204
    assert shop.fingerprint() == before


class TestUpdateOrder:
    """PATCH /store/orders/{orderId}."""

    async def test_any_accounts_order_is_updated_to_the_end_of_its_life(
        self, shop: Shop, clock: ManualClock
    ) -> None:
        """A delivery takes place now."""
        other, _ = await shop.open_account("other")
        await add_pets(shop, 1)
        await place(shop, 1, key=other)
        assert (await patch(shop, 1, {"status": "approved"})).json() == shown(1, 1, "approved")
        delivered = (await patch(shop, 1, {"status": "delivered"})).json()
        assert delivered == shown(1, 1, "delivered", shipDate=delivered["shipDate"])
        assert status_of(shop, 1) == "sold"
        assert (await shop.ask("GET", ORDERS, key=other)).json() == [delivered]

    @pytest.mark.parametrize(
        "media_type", ["application/json", "Application/Merge-Patch+JSON; charset=utf-8"]
    )
    async def test_null_takes_a_ship_date_back(self, shop: Shop, clock: ManualClock, media_type: str) -> None:
        """RFC 7396. Again: nothing changes (I12). A delivery with null takes place now, and stays dated."""
        await add_pets(shop, 1)
        await place(shop, 1)
        await patch(shop, 1, {"status": "approved", "shipDate": "2030-01-01T00:00:00Z"})
        headers = [("authorization", f"Bearer {shop.key}"), ("content-type", media_type)]
        for _ in range(2):
            answer = await shop.call("PATCH", f"{ORDERS}/1", headers, b'{"shipDate":null}')
            assert (answer.status, answer.json()) == (200, shown(1, 1, "approved"))
            before = shop.fingerprint()
        await patch(shop, 1, {"shipDate": None})
        assert shop.fingerprint() == before
        delivered = await patch(shop, 1, {"status": "delivered", "shipDate": None})
        assert delivered.json()["shipDate"] == iso_moment(clock.now_ms())
        assert (await patch(shop, 1, {"shipDate": None})).code == "conflict"
        assert (await shop.ask("GET", ORDERS)).json() == [delivered.json()]
