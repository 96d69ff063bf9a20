"""Every operation of the contract as a Call: what is sent, how its answer is read, what may be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from petstore_client import models
from petstore_client.answers import Answer, Page, check_removal, only_item, page_of, reads, tagged
from petstore_client.arguments import (
    NotGiven,
    Query,
    etag,
    idempotency_key,
    identifier,
    members,
    moment,
    query,
    some_members,
)
from petstore_client.documents import read_array
from petstore_client.errors import UnexpectedAnswer
from petstore_client.models import Category, Order, OrderScope, OrderStatus, Pet, PetOrder, PetStatus, Usage

_T = TypeVar("_T")
PAGE_SIZE_MAX = 100
_IDS_AT_ONCE = 100

# Method and path by the contract's operationId.
OPERATIONS = {
    "listPets": ("GET", "/pets"),
    "createPet": ("POST", "/pets"),
    "getPet": ("GET", "/pets/{id}"),
    "updatePet": ("PATCH", "/pets/{id}"),
    "deletePet": ("DELETE", "/pets/{id}"),
    "listCategories": ("GET", "/categories"),
    "listOrders": ("GET", "/store/orders"),
    "placeOrder": ("POST", "/store/orders"),
    "cancelOrder": ("DELETE", "/store/orders/{id}"),
    "updateOrder": ("PATCH", "/store/orders/{id}"),
    "getUsage": ("GET", "/usage"),
    "listEvents": ("GET", "/events"),
    "listWebhooks": ("GET", "/webhooks"),
    "createWebhook": ("POST", "/webhooks"),
    "getWebhook": ("GET", "/webhooks/{id}"),
    "updateWebhook": ("PATCH", "/webhooks/{id}"),
    "deleteWebhook": ("DELETE", "/webhooks/{id}"),
    "rotateWebhookSecret": ("POST", "/webhooks/{id}/secret"),
    "testWebhook": ("POST", "/webhooks/{id}/test"),
    "listDeliveries": ("GET", "/webhooks/{id}/deliveries"),
    "redeliver": ("POST", "/webhooks/{id}/deliveries/{eventId}"),
    "rehearseEvent": ("POST", "/rehearsal/events"),
}


@dataclass(frozen=True)
class Call(Generic[_T]):
    """One operation with its arguments. `read` makes the result of an answer of success."""

    operation: str
    read: Callable[[Answer], _T]
    id: int | None = None
    event_id: str = ""
    query: Query = ()
    document: dict[str, Any] | None = None
    idempotency_key: str | None = None
    if_match: str | None = None
    cursor: str | None = None  # where the page begins; None: the first
    pages: int = 0  # how many the walk has had before
    landmark: str | None = None  # the cursor of an earlier page
    wait_seconds: int = 0  # for which the service may hold the answer back
    # A follower's: it goes on for ever, not before this monotonic time, and leaves calls to others.
    follows_at: float | None = None

    @property
    def method(self) -> str:
        return OPERATIONS[self.operation][0]

    @property
    def path(self) -> str:
        return OPERATIONS[self.operation][1].replace("{id}", str(self.id)).replace("{eventId}", self.event_id)

    @property
    def parameters(self) -> Query:
        """The parameters of the address."""
        return self.query if self.cursor is None else (*self.query, ("cursor", self.cursor))

    @property
    def changes(self) -> bool:
        """Whether an unanswered try leaves an unknown outcome."""
        return self.method != "GET"

    @property
    def repeatable(self) -> bool:
        """Whether a repetition can't double an effect, even when the first try took place.

        A creation repeats under its Idempotency-Key. An animal that was removed never comes back under its
        identifier, and a cancelled order stays one. A PATCH might undo what somebody else changed meanwhile,
        unless it takes place only in the state that the caller saw.
        """
        keyed = self.idempotency_key is not None or self.if_match not in {None, "*"}
        return self.method in {"GET", "DELETE"} or keyed

    @property
    def absence_is_success(self) -> bool:
        """A repeated removal finds nothing: the first try took place."""
        return self.operation in {"deletePet", "deleteWebhook"}

    @property
    def has_own_limit(self) -> bool:
        """Whether it may be refused by a limit of its own while other calls of the key are not."""
        return self.operation == "testWebhook"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the operation itself; the connection adds key and User-Agent."""
        headers = {"Accept": "application/json"}
        if self.document is not None:
            headers["Content-Type"] = "application/json"
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        if self.if_match is not None:
            headers["If-Match"] = self.if_match
        return headers

    @property
    def content(self) -> bytes | None:
        return None if self.document is None else json.dumps(self.document).encode()

    def after(self, page: Page[Any]) -> Call[_T] | None:
        """The call for the next page."""
        cursor = page.next_cursor
        if cursor is None:
            return None
        if cursor in {self.cursor, self.landmark}:
            raise UnexpectedAnswer("The pages lead in a circle. The walk would not end.")
        # Brent's way to find a circle remembers one cursor, however many pages there are.
        pages = self.pages + 1
        landmark = cursor if pages & (pages - 1) == 0 else self.landmark
        return replace(self, cursor=cursor, pages=pages, landmark=landmark)


def list_pets(
    status: PetStatus | None = None,
    category_id: int | None = None,
    order: PetOrder | None = None,
    ids: Iterable[int] | None = None,
    limit: int = PAGE_SIZE_MAX,
    cursor: str | None = None,
) -> Call[Page[Pet]] | None:
    """GET /pets; None when `ids` is empty: without the filter it would list all animals."""
    if ids is not None:
        ids = tuple(ids)
        if not ids:
            return None
    filters = [("status", status), ("categoryId", category_id), ("order", order), ("limit", limit)]
    return Call("listPets", page_of(models.read_pet), query=query(filters, ids or ()), cursor=cursor)


def get_pets(ids: Iterable[int]) -> Sequence[Call[Page[Pet]]]:
    """Calls of GET /pets?id=…, each for up to 100 different identifiers."""
    wanted = sorted(set(ids))
    batches = [wanted[start : start + _IDS_AT_ONCE] for start in range(0, len(wanted), _IDS_AT_ONCE)]
    return [call for batch in batches if (call := list_pets(ids=batch)) is not None]


def get_pet(pet_id: int) -> Call[Pet]:
    """GET /pets?id=…, the first of its list."""
    read = only_item(models.read_pet, f"There is no animal {pet_id}.")
    return Call("listPets", read, query=query((), (pet_id,)))


def get_pet_by_path(pet_id: int) -> Call[Pet]:
    """GET /pets/{petId}, deprecated."""
    return Call("getPet", tagged(reads(models.read_pet)), id=identifier(pet_id))


def create_pet(name: str, category_id: int, status: PetStatus | None, key: str | None) -> Call[Pet]:
    """POST /pets."""
    document = members(name=name, categoryId=category_id, status=status)
    read = tagged(reads(models.read_pet))
    return Call("createPet", read, document=document, idempotency_key=idempotency_key(key))


def update_pet(
    pet_id: int, name: str | None, category_id: int | None, status: PetStatus | None, if_match: str | None
) -> Call[Pet]:
    """PATCH /pets/{petId}."""
    document = some_members(name=name, categoryId=category_id, status=status)
    read = tagged(reads(models.read_pet))
    return Call("updatePet", read, id=identifier(pet_id), document=document, if_match=etag(if_match))


def delete_pet(pet_id: int, if_match: str | None) -> Call[None]:
    """DELETE /pets/{petId}."""
    return Call("deletePet", check_removal, id=identifier(pet_id), if_match=etag(if_match))


def list_orders(
    status: OrderStatus | None, scope: OrderScope | None, limit: int, cursor: str | None = None
) -> Call[Page[Order]]:
    """GET /store/orders."""
    filters = [("status", status), ("scope", scope), ("limit", limit)]
    return Call("listOrders", page_of(models.read_order), query=query(filters), cursor=cursor)


def get_order(order_id: int) -> Call[Order]:
    """GET /store/orders?id=…, the first of its list."""
    read = only_item(models.read_order, f"There is no order {order_id}.")
    return Call("listOrders", read, query=query((), (order_id,)))


def place_order(pet_id: int, reference: str | None, key: str | None) -> Call[Order]:
    """POST /store/orders."""
    document = members(petId=identifier(pet_id), reference=reference)
    read = tagged(reads(models.read_order))
    return Call("placeOrder", read, document=document, idempotency_key=idempotency_key(key))


def cancel_order(order_id: int, if_match: str | None) -> Call[None]:
    """DELETE /store/orders/{orderId}."""
    return Call("cancelOrder", check_removal, id=identifier(order_id), if_match=etag(if_match))


def update_order(
    order_id: int, status: OrderStatus | None, ship_date: datetime | NotGiven | None, if_match: str | None
) -> Call[Order]:
    """PATCH /store/orders/{orderId}."""
    document = some_members({"shipDate": moment(ship_date)}, status=status)
    read = tagged(reads(models.read_order))
    return Call("updateOrder", read, id=identifier(order_id), document=document, if_match=etag(if_match))


def list_categories() -> Call[tuple[Category, ...]]:
    """GET /categories."""
    return Call("listCategories", reads(read_array(models.read_category)))


def get_usage() -> Call[Usage]:
    """GET /usage."""
    return Call("getUsage", reads(models.read_usage))
