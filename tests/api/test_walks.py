"""What holds for every operation: a change has its entries in the journal, orders are private.

The tables name every operation: one that is added has to say here what it changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from petstore.core.customers import Customer
from petstore.core.keys import Access
from petstore.core.pets import PetChange
from tests.api.world import (
    APPROVED,
    AVAILABLE,
    BACKENDS,
    CANCELLED,
    DELIVERED,
    DISABLED,
    ENABLED,
    EVENTS,
    FOREIGN,
    ORDERS,
    PLACED,
    RESERVED,
    SOLD,
    URL,
    WEBHOOKS,
    Call,
    World,
    open_world,
    repeated,
)
from tests.support.contract import table
from tests.support.journal import ACTOR

TABLE = table()
PET = f"/v1/pets/{AVAILABLE}"
HOOK, STOPPED = f"{WEBHOOKS}/{ENABLED}", f"{WEBHOOKS}/{DISABLED}"


# As a note and as a price, in hundredths and as it is written.
WRITTEN = ("Kept to ourselves", "7654321", "76543.21")


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
    "listEvents": [],
    "listWebhooks": [],
    "createWebhook": [Change(Call("POST", WEBHOOKS, {"url": URL}, "write"), 201, ("webhook.added",))],
    "getWebhook": [],
    "updateWebhook": [
        Change(Call("PATCH", HOOK, {"types": ["pet.*"]}, "write"), 200, ("webhook.changed",)),
        Change(Call("PATCH", HOOK, {"enabled": False}), 200, ("webhook.disabled",)),
        Change(Call("PATCH", HOOK, {"after": "now"}), 200, ("webhook.moved",)),
        Change(
            Call("PATCH", STOPPED, {"description": "x", "enabled": True, "after": "now"}),
            200,
            ("webhook.changed", "webhook.moved", "webhook.enabled"),
        ),
    ],
    "deleteWebhook": [Change(Call("DELETE", HOOK, None, "write"), 204, ("webhook.removed",))],
    "rotateWebhookSecret": [Change(Call("POST", f"{HOOK}/secret", None, "write"), 200, ("webhook.rotated",))],
    "testWebhook": [Change(Call("POST", f"{HOOK}/test", None, "write"), 202, ("webhook.tested",))],
    "listDeliveries": [],
    "redeliver": [
        Change(Call("POST", f"{HOOK}/deliveries/{{event}}", None, "write"), 202, ("webhook.redelivered",))
    ],
    "rehearseEvent": [],
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
    "listEvents": [Call("GET", EVENTS, None, "read")],
    "listWebhooks": [Call("GET", WEBHOOKS, None, "write")],
    "createWebhook": [repeated(WEBHOOKS)],
    "getWebhook": [Call("GET", HOOK, None, "write"), Call("HEAD", HOOK)],
    "updateWebhook": [
        Call("PATCH", HOOK, {"url": URL, "types": ["*"], "description": "", "enabled": True}, "write"),
        Call("PATCH", STOPPED, {"enabled": False}),
    ],
    "deleteWebhook": [],
    "rotateWebhookSecret": [],
    "testWebhook": [],
    "listDeliveries": [Call("GET", f"{HOOK}/deliveries", None, "write"), Call("HEAD", f"{HOOK}/deliveries")],
    "redeliver": [],
    "rehearseEvent": [Call("POST", "/v1/rehearsal/events", {"type": "pet.created"}, "write")],
    "getUsage": [Call("GET", "/v1/usage", None, "read")],
}


@pytest.fixture(params=BACKENDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(request.param, tmp_path, stage="staging") as opened:
        yield opened


def of(table: dict[str, list[Any]]) -> Any:
    """A parameter for each row of a table, by the operation's name and number."""
    return [
        pytest.param(item, id=f"{name}-{number}")
        for name, items in table.items()
        for number, item in enumerate(items)
    ]


@pytest.mark.parametrize("table", [CHANGES, UNCHANGED], ids=["changes", "unchanged"])
def test_every_operation_is_named(table: dict[str, Any]) -> None:
    """An operation that is added must say in these tables what it changes and keeps."""
    assert set(table) == {row.name for row in TABLE}


@pytest.mark.parametrize("change", of(CHANGES))
@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_a_change_has_exactly_its_entries(world: World, change: Change) -> None:
    """The entries have the caller's actor. What each store writes: tests/storage/contract/test_journal.py."""
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


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_what_staff_write_down_is_theirs(world: World) -> None:
    """No answer of any operation has it, no event tells of its change, no client takes it away."""
    asked = Call("GET", f"{EVENTS}?limit=100", None, "manage")
    told, store = (await world.ask(asked)).body, world.shop.store
    for pet_id in range(AVAILABLE, RESERVED + 1):
        await store.pets.change(pet_id, PetChange(price=int(WRITTEN[1]), note=WRITTEN[0]), ACTOR)
    for order_id in range(PLACED, FOREIGN + 1):
        await store.orders.comment(order_id, WRITTEN[0], ACTOR)
    for account in ("own", "other"):
        await store.customers.set(account, Customer(*[WRITTEN[0]] * 5), ACTOR)
    assert (await world.ask(asked)).body == told
    calls = [change.call for changes in CHANGES.values() for change in changes]
    calls += [call for row in TABLE for call in UNCHANGED[row.name]]
    for call in [*calls, asked]:
        body = (await world.ask(call)).body.decode()
        assert not [text for text in WRITTEN if text in body], str(call)
    assert {(await store.orders.get(order_id)).comment for order_id in (PLACED, APPROVED)} == {WRITTEN[0]}
    changed = await store.pets.get_or_none(SOLD)
    assert (changed.status, changed.price, changed.note) == ("available", int(WRITTEN[1]), WRITTEN[0])
