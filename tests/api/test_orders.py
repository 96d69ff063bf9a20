"""The operations on orders: who sees which, what each answers, and what becomes of the animal."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from petstore.core.keys import Access
from petstore.core.moments import iso_moment
from tests.api.checks import CheckedShop, settle
from tests.api.test_idempotency import held
from tests.support.clock import ManualClock
from tests.support.service import Answer, Pairs

ORDERS = "/v1/store/orders"


async def add_pets(shop: CheckedShop, count: int) -> None:
    for number in range(1, count + 1):
        await shop.post({"name": f"pet {number}", "categoryId": 1})


async def place(shop: CheckedShop, pet_id: int, headers: Pairs = (), key: str | None = None) -> Answer:
    return await shop.send("POST", ORDERS, {"petId": pet_id}, headers, key=key)


async def patch(shop: CheckedShop, order_id: object, document: object, key: str | None = None) -> Answer:
    return await shop.send("PATCH", f"{ORDERS}/{order_id}", document, key=key)


def status_of(shop: CheckedShop, pet_id: int) -> str:
    return {row[0]: str(row[3]) for row in shop.pets()}[pet_id]


def shown(order_id: int, pet_id: int, status: str = "placed", **more: object) -> dict[str, Any]:
    complete = status == "delivered"
    return {"id": order_id, "petId": pet_id, "quantity": 1, "status": status, "complete": complete, **more}


class TestListOrders200:
    """GET /store/orders."""

    async def test_the_body_is_a_bare_array_of_the_accounts_orders(self, shop: CheckedShop) -> None:
        """Ascending by id; those of other accounts are not in it, also for a manage key, and also by id."""
        other, _ = await shop.open_account("other")
        await add_pets(shop, 3)
        for pet_id, key in ((1, None), (2, other), (3, None)):
            await place(shop, pet_id, key=key)
        mine = [shown(1, 1), shown(3, 3)]
        assert (await shop.ask("GET", ORDERS)).json() == mine
        assert (await shop.ask("GET", f"{ORDERS}?id=3&id=2&id=1&id=99")).json() == mine
        assert (await shop.ask("GET", f"{ORDERS}?id=3,2,1,99")).json() == mine
        assert (await shop.ask("GET", ORDERS, key=other)).json() == [shown(2, 2)]
        reader, _ = await shop.open_account("reader", access=Access.READ)
        assert (await shop.ask("GET", f"{ORDERS}?id=1&id=2", key=reader)).json() == []

    async def test_a_walk_with_a_filter(self, shop: CheckedShop) -> None:
        """`Link` keeps limit and filters until the last page."""
        await add_pets(shop, 6)
        for pet_id in range(1, 7):
            await place(shop, pet_id)
        await patch(shop, 3, {"status": "approved"})
        found: list[int] = []
        target = f"{ORDERS}?limit=2&status=placed&id=1&id=2&id=3&id=4&id=6"
        while target:
            page = await shop.ask("GET", target)
            found += [order["id"] for order in page.json()]
            assert page.links["first"] == f"{ORDERS}?limit=2&status=placed&id=1&id=2&id=3&id=4&id=6"
            target = page.links.get("next", "")
        assert found == [1, 2, 4, 6]

    async def test_of_a_delivered_order(self, shop: CheckedShop, clock: ManualClock) -> None:
        """The members in the documented order, with the ship date in UTC."""
        await add_pets(shop, 1)
        await place(shop, 1)
        await patch(shop, 1, {"status": "approved", "shipDate": "2026-11-21T09:30:00+01:00"})
        await patch(shop, 1, {"status": "delivered"})
        assert (await shop.ask("GET", ORDERS)).body == (
            b'[{"id":1,"petId":1,"quantity":1,"shipDate":"2026-11-21T08:30:00.000Z",'
            b'"status":"delivered","complete":true}]'
        )


class TestListOrders400:
    """Parameters that it does not take."""

    @pytest.mark.parametrize(
        "query",
        [
            "limit=0", "limit=101", "limit=05", "status=available", "status=PLACED", "status=", "id=0",
            "id=x", "status=placed&status=placed", "petId=1", "Status=placed", "cursor=",
            "cursor=AAAAAAAAAAKsMSDc",            "&".join(f"id={n}" for n in range(1, 102)),
        ],
    )  # fmt: skip
    async def test_refused(self, shop: CheckedShop, query: str) -> None:
        """`invalid_parameter`, and the message names the parameter."""
        answer = await shop.ask("GET", f"{ORDERS}?{query}")
        assert (answer.status, answer.code) == (400, "invalid_parameter")
        assert answer.json()["message"].startswith(query.partition("=")[0])

    async def test_a_cursor_belongs_to_its_account_and_list(self, shop: CheckedShop) -> None:
        """Not to another account's orders, another filter, or the animals; and theirs not to orders."""
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
    async def test_the_animal_is_reserved(self, shop: CheckedShop, document: dict[str, int]) -> None:
        """The order with its identifier, and where it can be read; the journal names the key."""
        await add_pets(shop, 1)
        answer = await shop.send("POST", ORDERS, document)
        assert answer.status == 201
        assert answer.body == b'{"id":1,"petId":1,"quantity":1,"status":"placed","complete":false}'
        assert answer.headers["location"] == f"{ORDERS}?id=1"
        assert status_of(shop, 1) == "pending"
        assert (await shop.ask("GET", answer.headers["location"])).json() == [answer.json()]

    async def test_a_replay_shows_the_order_as_it_was_placed(self, shop: CheckedShop) -> None:
        """The same bytes and Location, marked, although the order has moved on; one order."""
        await add_pets(shop, 1)
        first = await place(shop, 1, [("idempotency-key", "k")])
        await patch(shop, 1, {"status": "approved"})
        again = await place(shop, 1, [("idempotency-key", "k")])
        assert (again.status, again.body) == (201, first.body)
        assert again.headers["location"] == first.headers["location"]
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert (await shop.ask("GET", ORDERS)).json() == [shown(1, 1, "approved")]


class TestPlaceOrderRefused:
    """What can't be ordered; a key of something else."""

    @pytest.mark.parametrize("status", ["pending", "sold", None])
    async def test_not_available(self, shop: CheckedShop, status: str | None) -> None:
        """`conflict`, and nothing changes (I12); the same for an animal that does not exist."""
        if status:
            await shop.post({"name": "Rex", "categoryId": 1, "status": status})
        before = shop.fingerprint()
        answer = await place(shop, 1, [("idempotency-key", "k")])
        assert (answer.status, answer.code) == (409, "conflict")
        assert "retry-after" not in answer.headers
        assert shop.fingerprint() == before

    async def test_a_key_of_something_else(self, shop: CheckedShop) -> None:
        """Of an animal, or of another order: 422, and nothing changes (I12)."""
        key = [("idempotency-key", "k")]
        await shop.post({"name": "Rex", "categoryId": 1}, key)
        await add_pets(shop, 2)
        assert (await place(shop, 1, key)).code == "idempotency_key_reused"
        key = [("idempotency-key", "l")]
        await place(shop, 1, key)
        before = shop.fingerprint()
        assert (await place(shop, 2, key)).status == 422
        assert (await shop.post({"name": "Rex", "categoryId": 1}, key)).status == 422
        assert shop.fingerprint() == before

    async def test_a_key_in_flight(self, shop: CheckedShop) -> None:
        """409 with `Retry-After`, whatever the animal; the first request is not disturbed."""
        await add_pets(shop, 2)
        key = [("idempotency-key", "k")]
        async with held(shop):
            first = asyncio.create_task(place(shop, 1, key))
            await settle()
            second, third = await place(shop, 1, key), await place(shop, 2, key)
            assert not first.done()
        assert [(a.status, a.code, a.headers["retry-after"]) for a in (second, third)] == [
            (409, "idempotency_key_in_use", "1")
        ] * 2
        assert (await first).status == 201
        assert (await place(shop, 1, key)).headers["idempotency-replayed"] == "true"

    @pytest.mark.parametrize("keys", [[""], ["a b"], ["k" * 256], ["k", "k"]])
    async def test_a_malformed_key(self, shop: CheckedShop, keys: list[str]) -> None:
        """400, and nothing changes (I12)."""
        await add_pets(shop, 1)
        before = shop.fingerprint()
        answer = await place(shop, 1, [("idempotency-key", key) for key in keys])
        assert (answer.status, answer.code) == (400, "invalid_header")
        assert shop.fingerprint() == before


class TestCancelOrder:
    """DELETE /store/orders/{orderId}."""

    async def test_204(self, shop: CheckedShop) -> None:
        """No body; the animal is available again. Once more: 204, and nothing changes (I12)."""
        await add_pets(shop, 1)
        await place(shop, 1)
        answer = await shop.ask("DELETE", f"{ORDERS}/1")
        assert (answer.status, answer.body) == (204, b"")
        assert status_of(shop, 1) == "available"
        assert (await shop.ask("GET", ORDERS)).json() == [shown(1, 1, "cancelled")]
        before = shop.fingerprint()
        assert (await shop.ask("DELETE", f"{ORDERS}/1")).status == 204
        assert shop.fingerprint() == before

    async def test_409_when_delivered(self, shop: CheckedShop) -> None:
        """Nothing changes (I12)."""
        await add_pets(shop, 1)
        await place(shop, 1)
        for status in ("approved", "delivered"):
            await patch(shop, 1, {"status": status})
        before = shop.fingerprint()
        answer = await shop.ask("DELETE", f"{ORDERS}/1")
        assert (answer.status, answer.code) == (409, "conflict")
        assert shop.fingerprint() == before

    @pytest.mark.parametrize("order_id", ["1", "2", "0", "01", "+1", "1.0", "x", str(2**63)])
    async def test_404(self, shop: CheckedShop, order_id: str) -> None:
        """Another account's order, also for a manage key, as one that does not exist (I12)."""
        other, _ = await shop.open_account("other")
        await add_pets(shop, 1)
        await place(shop, 1, key=other)
        before = shop.fingerprint()
        answer = await shop.ask("DELETE", f"{ORDERS}/{order_id}")
        assert (answer.status, answer.code) == (404, "not_found")
        assert shop.fingerprint() == before


class TestUpdateOrder:
    """PATCH /store/orders/{orderId}."""

    async def test_200(self, shop: CheckedShop, clock: ManualClock) -> None:
        """Any account's order, to the end of its life; a delivery takes place now."""
        other, _ = await shop.open_account("other")
        await add_pets(shop, 1)
        await place(shop, 1, key=other)
        assert (await patch(shop, 1, {"status": "approved"})).json() == shown(1, 1, "approved")
        delivered = (await patch(shop, 1, {"status": "delivered"})).json()
        assert delivered == shown(1, 1, "delivered", shipDate=delivered["shipDate"])
        assert status_of(shop, 1) == "sold"
        assert (await shop.ask("GET", ORDERS, key=other)).json() == [delivered]

    @pytest.mark.parametrize("media_type", ["application/json", "application/merge-patch+json"])
    async def test_null_takes_a_ship_date_back(
        self, shop: CheckedShop, clock: ManualClock, media_type: str
    ) -> None:
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

    @pytest.mark.parametrize("access", [Access.READ, Access.WRITE])
    async def test_403(self, shop: CheckedShop, access: Access) -> None:
        """Only for keys of the level manage, also for the account's own order (I12)."""
        key, _ = await shop.open_account("other", access=access)
        await add_pets(shop, 1)
        await place(shop, 1, key=key)
        before = shop.fingerprint()
        assert (await patch(shop, 1, {"status": "approved"}, key)).code == "forbidden"
        assert shop.fingerprint() == before

    @pytest.mark.parametrize("order_id", ["2", "0", "01", "x", str(2**63)])
    async def test_404(self, shop: CheckedShop, order_id: str) -> None:
        """What does not exist, or is no identifier."""
        assert (await patch(shop, order_id, {"status": "approved"})).code == "not_found"

    @pytest.mark.parametrize(
        ("way", "change", "fragment"),
        [
            ([], {"status": "delivered"}, "is placed: it can become approved or cancelled, not delivered."),
            (["approved"], {"status": "placed"}, "it can become delivered or cancelled, not placed."),
            (
                ["cancelled"],
                {"status": "approved"},
                "is cancelled: in its last state, it can't become approved.",
            ),
            (["approved", "delivered"], {"status": "cancelled"}, "is delivered: in its last state"),
            (
                [],
                {"status": "cancelled", "shipDate": "2026-11-21T00:00:00Z"},
                "a cancelled order gets no ship date",
            ),
            (["cancelled"], {"shipDate": "2026-11-21T00:00:00Z"}, "a cancelled order gets no ship date"),
        ],
    )
    async def test_409(
        self, shop: CheckedShop, way: list[str], change: dict[str, str], fragment: str
    ) -> None:
        """The message names the states that are allowed; nothing changes (I12)."""
        await add_pets(shop, 1)
        await place(shop, 1)
        for status in way:
            await patch(shop, 1, {"status": status})
        before = shop.fingerprint()
        answer = await patch(shop, 1, change)
        assert (answer.status, answer.code) == (409, "conflict")
        assert fragment in answer.json()["message"]
        assert shop.fingerprint() == before


_NEW = [
    ({}, "petId: required"),
    ({"petId": 0}, "petId: expected an integer from 1 to 9223372036854775807"),
    ({"petId": 2**63}, "petId: expected an integer from 1"),
    ({"petId": "1"}, "petId: expected an integer, got a string"),
    ({"petId": True}, "petId: expected an integer, got a boolean"),
    ({"petId": 1.0}, "petId: expected an integer, got a number with a fraction"),
    ({"petId": None}, "petId: expected an integer, got null"),
    ({"petId": 1, "quantity": 2}, "quantity: expected 1, since an animal is one animal"),
    ({"petId": 1, "quantity": 0}, "quantity: expected 1"),
    ({"petId": 1, "quantity": None}, "quantity: expected an integer, got null"),
    ({"petId": 1, "id": 3}, "id: assigned by the service"),
    ({"petId": 1, "status": "placed"}, "'status': not a member of a new order"),
    ({"petId": 1, "shipDate": "2026-11-21T00:00:00Z"}, "'shipDate': not a member of a new order"),
    ({"petid": 1}, "'petid': not a member of a new order; petId: required"),
    ([1], "Expected an object, got an array"),
]  # fmt: skip
_CHANGES = [
    ({}, "Send at least one of status, shipDate"),
    ({"status": None}, "status: expected a string, got null"),
    ({"status": "Approved"}, "status: expected one of placed, approved, delivered, cancelled"),
    ({"status": "sold"}, "status: expected one of"),
    ({"shipDate": 1795219200}, "shipDate: expected a string or null, got an integer"),
    ({"shipDate": "tomorrow"}, "shipDate: expected a date and time"),
    ({"shipDate": "2026-02-30T00:00:00Z"}, "shipDate: expected a date and time"),
    ({"shipDate": "2026-11-21"}, "shipDate: expected a date and time"),
    ({"status": "approved", "complete": True}, "'complete': not a member of a change of an order"),
    ({"id": 1, "status": "approved"}, "id: assigned by the service"),
    (
        {"status": "x", "shipDate": "y"},
        "status: expected one of placed, approved, delivered, cancelled; ship",
    ),
    ("approved", "Expected an object, got a string"),
]
_HOSTILE = [
    *(("POST", ORDERS, document, message) for document, message in _NEW),
    *(("PATCH", f"{ORDERS}/1", document, message) for document, message in _CHANGES),
]


class TestHostileBodies400:
    """Bodies that are no order and no change of one."""

    @pytest.mark.parametrize(
        ("method", "target", "document", "message"),
        _HOSTILE,
        ids=[f"{case[0]} {json.dumps(case[2])}" for case in _HOSTILE],
    )
    async def test_refused(
        self, shop: CheckedShop, method: str, target: str, document: object, message: str
    ) -> None:
        """The message names every member at fault; nothing changes (I12)."""
        await add_pets(shop, 2)
        await place(shop, 1)
        before = shop.fingerprint()
        answer = await shop.send(method, target, document)
        assert (answer.status, answer.code) == (400, "invalid_body")
        assert message in answer.json()["message"]
        assert shop.fingerprint() == before

    @pytest.mark.parametrize(("method", "target"), [("POST", ORDERS), ("PATCH", f"{ORDERS}/1")])
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b"", "invalid_json"),
            (b'{"petId": 2', "invalid_json"),
            (b'{"petId": NaN}', "invalid_json"),
            (b'{"status": "\xff"}', "invalid_json"),
            (b'{"petId": 2, "petId": 2}', "invalid_body"),
            (b'{"status": "approved", "status": "approved"}', "invalid_body"),
            (b'{"st\\u0061tus": "approved", "status": "approved"}', "invalid_body"),
            (b'{"shipDate": "\\ud800"}', "invalid_body"),
        ],
    )
    async def test_raw(self, shop: CheckedShop, method: str, target: str, body: bytes, code: str) -> None:
        """No JSON, and members that occur twice."""
        await add_pets(shop, 2)
        await place(shop, 1)
        before = shop.fingerprint()
        answer = await shop.send(method, target, None, body=body)
        assert (answer.status, answer.code) == (400, code)
        assert shop.fingerprint() == before

    @pytest.mark.parametrize(("method", "target"), [("POST", ORDERS), ("PATCH", f"{ORDERS}/1")])
    async def test_another_media_type(self, shop: CheckedShop, method: str, target: str) -> None:
        """415, before the body is read."""
        form = [
            ("authorization", f"Bearer {shop.key}"),
            ("content-type", "application/x-www-form-urlencoded"),
        ]
        assert (await shop.call(method, target, form, b'{"petId": 1}')).status == 415
