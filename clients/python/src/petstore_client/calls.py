"""Every operation of the contract as a Call: what is sent, how its answer is read, what may be repeated."""

from __future__ import annotations

import json
import operator
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from petstore_client import models
from petstore_client.answers import Answer, check_removal, document_of, next_page
from petstore_client.errors import NotFound, UnexpectedAnswer
from petstore_client.models import Category, Order, OrderScope, OrderStatus, Pet, PetOrder, PetStatus, Usage

T = TypeVar("T")
_Tagged = TypeVar("_Tagged", Pet, Order)
_Query = tuple[tuple[str, str], ...]
LARGEST_PAGE = 100
_IDS_AT_ONCE = 100
_ETAG = re.compile(r'\*|(W/)?"[!#-~]*"')
_IDEMPOTENCY_KEY = re.compile("[!-~]{1,255}")

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
}


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a walk, and the address of the next."""

    items: tuple[T, ...]
    next_address: str | None


@dataclass(frozen=True)
class Call(Generic[T]):
    """One operation with its arguments. `read` makes the result of an answer of success."""

    operation: str
    read: Callable[[Answer], T]
    id: int | None = None
    query: _Query = ()
    document: dict[str, Any] | None = None
    idempotency_key: str | None = None
    if_match: str | None = None
    address: str | None = None  # of a next page, instead of path and query
    pages: int = 0  # of the walk, before this call's
    landmark: str | None = None  # the address of an earlier page
    wait_seconds: int = 0  # for which the service may hold the answer back
    # A follower's: it goes on for ever, not before this monotonic time, and leaves calls to others.
    follows_at: float | None = None

    @property
    def method(self) -> str:
        return OPERATIONS[self.operation][0]

    @property
    def path(self) -> str:
        return OPERATIONS[self.operation][1].replace("{id}", str(self.id))

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
        return self.operation == "deletePet"

    @property
    def headers(self) -> dict[str, str]:
        """Of the operation itself; the connection adds key and User-Agent."""
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

    def after(self, page: Page[Any]) -> Call[T] | None:
        """The call for the next page."""
        if page.next_address is None:
            return None
        if page.next_address == self.landmark:
            raise UnexpectedAnswer("The pages lead in a circle. The walk would not end.")
        # Brent's way to find a circle remembers one address, however many pages there are.
        pages = self.pages + 1
        landmark = page.next_address if pages & (pages - 1) == 0 else self.landmark
        return replace(self, address=page.next_address, pages=pages, landmark=landmark)


def list_pets(
    status: PetStatus | None = None,
    category_id: int | None = None,
    order: PetOrder | None = None,
    ids: Iterable[int] | None = None,
    page_size: int = LARGEST_PAGE,
) -> Call[Page[Pet]] | None:
    """GET /pets; None when `ids` is empty: without the filter it would list all animals."""
    if ids is not None:
        ids = tuple(ids)
        if not ids:
            return None
    filters = [("status", status), ("categoryId", category_id), ("order", order), ("limit", page_size)]
    return Call("listPets", _page_of(models.read_pet), query=_query(filters, ids or ()))


def get_pets(ids: Iterable[int]) -> Sequence[Call[Page[Pet]]]:
    """GET /pets?id=…, as many times as there are hundreds of different identifiers."""
    wanted = sorted(set(ids))
    batches = [wanted[at : at + _IDS_AT_ONCE] for at in range(0, len(wanted), _IDS_AT_ONCE)]
    return [call for batch in batches if (call := list_pets(ids=batch)) is not None]


def get_pet(pet_id: int) -> Call[Pet]:
    """GET /pets?id=…, the first of its list."""
    read = _only(models.read_pet, f"There is no animal {pet_id}.")
    return Call("listPets", read, query=_query((), (pet_id,)))


def get_pet_by_path(pet_id: int) -> Call[Pet]:
    """GET /pets/{petId}, deprecated."""
    return Call("getPet", _tagged(reads(models.read_pet)), id=_id(pet_id))


def create_pet(name: str, category_id: int, status: PetStatus | None, key: str | None) -> Call[Pet]:
    """POST /pets."""
    document = _given(name=name, categoryId=category_id, status=status)
    read = _tagged(reads(models.read_pet))
    return Call("createPet", read, document=document, idempotency_key=_idempotency_key(key))


def update_pet(
    pet_id: int, name: str | None, category_id: int | None, status: PetStatus | None, if_match: str | None
) -> Call[Pet]:
    """PATCH /pets/{petId}."""
    document = _some(name=name, categoryId=category_id, status=status)
    read = _tagged(reads(models.read_pet))
    return Call("updatePet", read, id=_id(pet_id), document=document, if_match=_etag(if_match))


def delete_pet(pet_id: int, if_match: str | None) -> Call[None]:
    """DELETE /pets/{petId}."""
    return Call("deletePet", check_removal, id=_id(pet_id), if_match=_etag(if_match))


def list_orders(
    status: OrderStatus | None = None, scope: OrderScope | None = None, page_size: int = LARGEST_PAGE
) -> Call[Page[Order]]:
    """GET /store/orders."""
    filters = [("status", status), ("scope", scope), ("limit", page_size)]
    return Call("listOrders", _page_of(models.read_order), query=_query(filters))


def get_order(order_id: int) -> Call[Order]:
    """GET /store/orders?id=…, the first of its list."""
    read = _only(models.read_order, f"There is no order {order_id}.")
    return Call("listOrders", read, query=_query((), (order_id,)))


def place_order(pet_id: int, key: str | None) -> Call[Order]:
    """POST /store/orders."""
    read = _tagged(reads(models.read_order))
    return Call("placeOrder", read, document={"petId": _id(pet_id)}, idempotency_key=_idempotency_key(key))


def cancel_order(order_id: int, if_match: str | None) -> Call[None]:
    """DELETE /store/orders/{orderId}."""
    return Call("cancelOrder", check_removal, id=_id(order_id), if_match=_etag(if_match))


def update_order(
    order_id: int, status: OrderStatus | None, ship_date: datetime | None, if_match: str | None
) -> Call[Order]:
    """PATCH /store/orders/{orderId}."""
    if ship_date is not None and ship_date.tzinfo is None:
        raise ValueError("ship_date needs a time zone, such as datetime.UTC.")
    shipped = None if ship_date is None else ship_date.isoformat(timespec="milliseconds")
    document = _some(status=status, shipDate=shipped)
    read = _tagged(reads(models.read_order))
    return Call("updateOrder", read, id=_id(order_id), document=document, if_match=_etag(if_match))


def list_categories() -> Call[tuple[Category, ...]]:
    """GET /categories."""
    return Call("listCategories", reads(models.read_array(models.read_category)))


def get_usage() -> Call[Usage]:
    """GET /usage."""
    return Call("getUsage", reads(models.read_usage))


def reads(read: Callable[[Any], T]) -> Callable[[Answer], T]:
    """Reads the document of an answer; raises UnexpectedAnswer when it is not the contract's."""

    def read_answer(answer: Answer) -> T:
        try:
            return read(document_of(answer))
        except (ValueError, TypeError, AttributeError) as error:
            raise UnexpectedAnswer(f"The answer is not the contract's: {error}.") from None

    return read_answer


def _page_of(read: Callable[[Any], T]) -> Callable[[Answer], Page[T]]:
    read_items = reads(models.read_array(read))
    return lambda answer: Page(read_items(answer), next_page(answer))


def _tagged(read: Callable[[Answer], _Tagged]) -> Callable[[Answer], _Tagged]:
    return lambda answer: replace(read(answer), etag=answer.headers.get("etag", ""))


def _only(read: Callable[[Any], _Tagged], absent: str) -> Callable[[Answer], _Tagged]:
    """The one that was asked for by its identifier: the tag of its list is its own."""
    read_items = reads(models.read_array(read))

    def read_first(answer: Answer) -> _Tagged:
        items = read_items(answer)
        if not items:
            raise NotFound("not_found", absent, 404, answer.request_id)
        return items[0]

    return _tagged(read_first)


def _query(filters: Iterable[tuple[str, object]], ids: Iterable[int] = ()) -> _Query:
    given = [(name, str(value)) for name, value in filters if value is not None]
    return (*given, *(("id", str(_id(each))) for each in ids))


def _id(value: int) -> int:
    """An identifier. Text might name another path, such as "../store/orders/5"; True is an int to Python."""
    if isinstance(value, bool):
        raise TypeError("An identifier is an integer, not a boolean.")
    return operator.index(value)


def _given(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _some(**members: object) -> dict[str, Any]:
    document = _given(**members)
    if not document:
        raise ValueError(f"Give at least one of {', '.join(members)}.")
    return document


def _etag(given: str | None) -> str | None:
    if given is None or _ETAG.fullmatch(given):
        return given
    raise ValueError(
        "if_match is the etag of what get, create, place or update returned, or *. Lists have none."
    )


def _idempotency_key(given: str | None) -> str:
    if given is None:
        return str(uuid.uuid4())
    if not _IDEMPOTENCY_KEY.fullmatch(given):
        raise ValueError("An idempotency key is 1 to 255 visible ASCII characters.")
    return given
