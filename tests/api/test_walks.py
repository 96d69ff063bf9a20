"""What holds for every operation: refusals change nothing, a change has its entries, orders are private.

The tables name every operation: one that is added has to say here what it changes and what it refuses.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from petstore.api.pipeline.routing import Operation
from petstore.core.keys import Access
from tests.api.contract import table
from tests.api.world import (
    APPROVED,
    AVAILABLE,
    BACKENDS,
    CANCELLED,
    DELIVERED,
    FOREIGN,
    HELD,
    MISSING,
    PENDING,
    PLACED,
    SOLD,
    SPARE,
    Call,
    World,
    open_world,
    repeated,
)

TABLE = table()
PET = f"/v1/pets/{AVAILABLE}"
ORDERS = "/v1/store/orders"


class Change(NamedTuple):
    """A call that changes something, and the entries of the journal that it adds."""

    call: Call
    status: int
    entries: tuple[str, ...]


# Every call of an operation that changes something, each made on a fresh store.
CHANGES: dict[str, list[Change]] = {
    "listPets": [],
    "createPet": [
        Change(Call("POST", "/v1/pets", {"name": "Rex", "categoryId": 1}, "write"), 201, ("pet.added",)),
    ],
    "getPet": [],
    "updatePet": [
        Change(Call("PATCH", PET, {"name": "Rex", "status": "sold"}), 200, ("pet.changed",)),
        Change(Call("PATCH", f"/v1/pets/{SOLD}", {"status": "available"}), 200, ("pet.changed",)),
    ],
    "deletePet": [Change(Call("DELETE", PET), 204, ("pet.removed",))],
    "listOrders": [],
    "placeOrder": [
        Change(Call("POST", ORDERS, {"petId": AVAILABLE}, "write"), 201, ("order.placed", "pet.changed")),
    ],
    "updateOrder": [
        Change(Call("PATCH", f"{ORDERS}/{PLACED}", {"status": "approved"}), 200, ("order.approved",)),
        Change(Call("PATCH", f"{ORDERS}/{FOREIGN}", {"status": "approved"}), 200, ("order.approved",)),
        Change(
            Call("PATCH", f"{ORDERS}/{APPROVED}", {"status": "delivered"}),
            200,
            ("order.delivered", "pet.changed"),
        ),
        Change(
            Call("PATCH", f"{ORDERS}/{PLACED}", {"shipDate": "2030-01-01T00:00:00Z"}), 200, ("order.changed",)
        ),
        Change(
            Call("PATCH", f"{ORDERS}/{PLACED}", {"status": "cancelled"}),
            200,
            ("order.cancelled", "pet.changed"),
        ),
    ],
    "cancelOrder": [
        Change(Call("DELETE", f"{ORDERS}/{PLACED}", None, "write"), 204, ("order.cancelled", "pet.changed")),
    ],
    "listCategories": [],
    "getUsage": [],
}

# Calls that succeed and change nothing.
UNCHANGED: dict[str, list[Call]] = {
    "listPets": [Call("GET", "/v1/pets", None, "read"), Call("HEAD", "/v1/pets", None, "read")],
    "createPet": [repeated("/v1/pets")],
    "getPet": [Call("GET", PET, None, "read")],
    "updatePet": [Call("PATCH", PET, {"status": "available"}), Call("PATCH", PET, {"categoryId": 1})],
    "deletePet": [],
    "listOrders": [Call("GET", ORDERS, None, "read")],
    "placeOrder": [repeated(ORDERS)],
    "updateOrder": [Call("PATCH", f"{ORDERS}/{DELIVERED}", {"status": "delivered"})],
    "cancelOrder": [Call("DELETE", f"{ORDERS}/{CANCELLED}", None, "write")],
    "listCategories": [Call("GET", "/v1/categories", None, "read")],
    "getUsage": [Call("GET", "/v1/usage", None, "read")],
}

# Calls that are refused for a reason of the operation's own; the reasons of all are made in `refusals`.
REFUSED: dict[str, list[tuple[Call, int]]] = {
    "listPets": [(Call("GET", "/v1/pets?limit=0"), 400)],
    "createPet": [
        (Call("POST", "/v1/pets", {"name": ""}), 400),
        (repeated("/v1/pets", {"name": "other", "categoryId": 1}), 422),
    ],
    "getPet": [],
    "updatePet": [
        (Call("PATCH", PET, {}), 400),
        (Call("PATCH", PET, {"id": 7}), 400),
        (Call("PATCH", f"/v1/pets/{SOLD}", {"status": "pending"}), 409),
        (Call("PATCH", f"/v1/pets/{HELD}", {"status": "sold"}), 409),
    ],
    "deletePet": [(Call("DELETE", f"/v1/pets/{HELD}"), 409)],
    "listOrders": [(Call("GET", f"{ORDERS}?status=sold"), 400)],
    "placeOrder": [
        (Call("POST", ORDERS, {"petId": AVAILABLE, "quantity": 2}), 400),
        (Call("POST", ORDERS, {"petId": PENDING}), 409),
        (Call("POST", ORDERS, {"petId": SOLD}), 409),
        (Call("POST", ORDERS, {"petId": MISSING}), 409),
        (repeated(ORDERS, {"petId": SPARE}), 422),
    ],
    "updateOrder": [
        (Call("PATCH", f"{ORDERS}/{PLACED}", {}), 400),
        (Call("PATCH", f"{ORDERS}/{PLACED}", {"status": "delivered"}), 409),
        (Call("PATCH", f"{ORDERS}/{DELIVERED}", {"status": "cancelled"}), 409),
        (Call("PATCH", f"{ORDERS}/{CANCELLED}", {"status": "placed"}), 409),
    ],
    "cancelOrder": [(Call("DELETE", f"{ORDERS}/{DELIVERED}", None, "write"), 409)],
    "listCategories": [],
    "getUsage": [],
}


def refusals(row: Operation) -> list[tuple[Call, int]]:
    """What every operation refuses, each with its status; its own reasons among them."""
    assert row.path is not None
    target = re.sub(r"\{\w+\}", "1", row.path)
    good = next((change.call for change in CHANGES[row.name]), Call(row.method, target))
    found = [*REFUSED[row.name]]
    found += [(good._replace(level=level), 401) for level in ("none", "revoked")]
    found.append((good._replace(target=f"{good.target}?page=2"), 400))
    found.append((good._replace(method="PUT"), 405))
    found += [(good._replace(level=level.value), 403) for level in Access if not level.includes(row.access)]
    if good.document is not None:
        content = (("content-type", "application/json"),)
        sent = good._replace(document=None, headers=content)
        for body in (b"", b"[]", b"{", b'{"unknown": 1}', b"null"):
            found.append((sent._replace(body=body), 400))
        found.append((sent._replace(body=b"{" + b" " * 70_000), 413))
        found.append((sent._replace(headers=(), body=b"{}"), 415))
    if row.path != target:
        parent = good.target.rpartition("/")[0]
        found += [(good._replace(target=f"{parent}/{last}"), 404) for last in (MISSING, "abc", "01", "0")]
    return found


@pytest.fixture(params=BACKENDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(request.param, tmp_path) as opened:
        yield opened


def of(table: dict[str, list[Any]]) -> Any:
    """A parameter for each row of a table, by the operation's name and number."""
    return [
        pytest.param(item, id=f"{name}-{number}")
        for name, items in table.items()
        for number, item in enumerate(items)
    ]


@pytest.mark.parametrize("table", [CHANGES, UNCHANGED, REFUSED], ids=["changes", "unchanged", "refused"])
def test_every_operation_is_named(table: dict[str, Any]) -> None:
    """An operation that is added must say in these tables what it changes, keeps and refuses."""
    assert set(table) == {row.name for row in TABLE}


@pytest.mark.parametrize("change", of(CHANGES))
async def test_a_change_has_exactly_its_entries(world: World, change: Change) -> None:
    """By the caller's actor; and the same call again adds none, or its own entries once more."""
    before, was = world.entries(), world.fingerprint()
    answer = await world.ask(change.call)
    assert answer.status == change.status, answer.body
    added = world.entries()[len(before) :]
    assert added == [(name, world.actors[change.call.level]) for name in change.entries]
    assert world.fingerprint() != was


async def test_a_success_without_a_change_has_no_entry(world: World) -> None:
    """Reads, replays, and changes to what is there already: every table is as before."""
    was = world.fingerprint()
    for row in TABLE:
        for call in UNCHANGED[row.name]:
            answer = await world.ask(call)
            assert answer.status in (200, 201, 204), (str(call), answer.body)
            assert world.fingerprint() == was, str(call)


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
async def test_a_refusal_changes_nothing(world: World, row: Operation) -> None:
    """Every table is as before, the journal among them."""
    was = world.fingerprint()
    for call, status in refusals(row):
        answer = await world.ask(call)
        assert answer.status == status, (str(call), answer.body)
        assert world.fingerprint() == was, str(call)


async def test_the_order_of_another_account_is_not_found(world: World) -> None:
    """404 by every operation on an order, with a key that may read and one that may write, and it is in no
    list; a key that may manage moves it, and its list does not show it either."""
    rows = [row for row in TABLE if row.path is not None and "{orderId}" in row.path]
    assert {row.method for row in rows} == {"PATCH", "DELETE"}
    was = world.fingerprint()
    for row in rows:
        assert row.path is not None
        target = row.path.replace("{orderId}", str(FOREIGN))
        document = {"status": "approved"} if row.method == "PATCH" else None
        for level in Access:
            if level.includes(row.access) and row.access is not Access.MANAGE:
                answer = await world.ask(Call(row.method, target, document, level.value))
                assert answer.status == 404, (row.name, level)
    for level in Access:
        listed = await world.ask(Call("GET", f"{ORDERS}?id={FOREIGN}", None, level.value))
        assert listed.json() == []
        whole = await world.ask(Call("GET", ORDERS, None, level.value))
        assert FOREIGN not in [order["id"] for order in whole.json()]
    assert world.fingerprint() == was
