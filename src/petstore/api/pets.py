"""The operations on animals: listPets, createPet, getPet, updatePet, deletePet."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from petstore.api.deprecation import Deprecation
from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.paging import (
    PageLinks,
    bind,
    read_cursor,
    read_integer,
    read_list,
    read_one_of,
    read_position,
    split_cursor,
    tag_of_page,
)
from petstore.api.pipeline.request import Parameters, Request, parameters_of
from petstore.api.pipeline.response import (
    Header,
    Response,
    make_created,
    make_page,
    make_representation,
    make_response,
)
from petstore.core.clock import Clock
from petstore.core.errors import NotFound
from petstore.core.keys import Caller
from petstore.core.pets import NEW_PET, PET_CHANGE, STATUSES, Pet, PetPage, PetQuery, shown_pet
from petstore.core.preconditions import encode, tag_of
from petstore.transactions.pets import Pets

PAGE_PARAMETERS = ("limit", "cursor", "after", "status", "id", "categoryId", "order")
_ORDERS = {"id": False, "-id": True}


class PetOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId."""

    pets: Pets
    clock: Clock
    deprecation: Deprecation
    reference_base: str
    body_timeout_seconds: float

    def list_pets(self, request: Request, caller: Caller) -> Response | Awaitable[Response]:
        """GET /pets: a page; `Link` refers to the first page and the next."""
        query, links = read_target(self.reference_base, request.query)
        page = self.pets.public_page(query)
        if isinstance(page, PetPage):
            return _list(query, links, page)
        return _list_later(query, links, page)

    async def create_pet(self, request: Request, caller: Caller) -> Response:
        """POST /pets: 201 once the animal is durable."""
        check_body_headers(request)
        idempotency_key = request.idempotency_key(caller.account_id)
        new = NEW_PET.read(await read_body(request, self.body_timeout_seconds))
        created = await self.pets.add(new, caller.actor, idempotency_key)
        body = encode(shown_pet(created.pet))
        return make_created(body, tag_of(body), self._location(created.pet.id), replayed=created.replayed)

    def get_pet(self, request: Request, caller: Caller) -> Response | Awaitable[Response]:
        """GET /pets/{petId}; 410 from the removal date on."""
        pet_id = request.path_id()
        if self._is_removed():
            raise self.deprecation.gone(pet_id)
        if request.query:
            request.refuse_parameters()
        pet = None if pet_id is None else self.pets.look_up(pet_id)
        return _show(pet) if pet is None or isinstance(pet, Pet) else _show_later(pet)

    async def update_pet(self, request: Request, caller: Caller) -> Response:
        """PATCH /pets/{petId}: the animal as it is now, durable. Stays when getPet is removed."""
        check_body_headers(request, patch=True)
        match = request.match()
        change = PET_CHANGE.read(await read_body(request, self.body_timeout_seconds))
        pet = await self.pets.change(request.required_id("animal"), change, caller.actor, match=match)
        body = encode(shown_pet(pet))
        return make_response(200, body, (b"etag", tag_of(body)))

    async def delete_pet(self, request: Request, caller: Caller) -> Response:
        """DELETE /pets/{petId}: 204 once the removal is durable. Stays when getPet is removed."""
        match = request.match()
        await self.pets.remove(request.required_id("animal"), caller.actor, match=match)
        return make_response(204, None)

    def get_pet_headers(self, request: Request) -> list[Header]:
        """The headers of deprecation, for every answer of getPet."""
        return self.deprecation.headers(request.path_id())

    def _is_removed(self) -> bool:
        return self.clock.now_ms() >= self.deprecation.removal_at_ms

    def _location(self, pet_id: int) -> str:
        if self._is_removed():
            return self.deprecation.successor(pet_id)
        return f"{self.reference_base}/pets/{pet_id}"


async def _show_later(pet: Awaitable[Pet | None]) -> Response:
    return _show(await pet)


def _show(pet: Pet | None) -> Response:
    if pet is None:
        raise NotFound("There is no such animal.")
    return make_representation(encode(shown_pet(pet)))


async def _list_later(query: PetQuery, links: PageLinks, page: Awaitable[PetPage]) -> Response:
    return _list(query, links, await page)


def _list(query: PetQuery, links: PageLinks, page: PetPage) -> Response:
    link = links.after(page.pets[-1].id if page.has_more else None)
    body = encode(page.pets)
    tag = tag_of_page(query.ids, page.pets, body, link)
    return make_page(body, tag, (b"link", link))


def read_page_query(parameters: Parameters) -> PetQuery:
    """The parameters of GET /pets.

    Raises InvalidParameter, with a message that names the parameter and the values that it takes.
    """
    given, ids, limit, status = read_list(parameters, PAGE_PARAMETERS, STATUSES)
    category_id = read_integer(given, "categoryId")
    newest_first = read_one_of(_ORDERS, given, "order", "id or -id") or False
    page = PetQuery(limit, status, ids, 0, category_id, newest_first)
    return replace(page, after_id=read_position(given, bind_cursor(page)))


def read_target(base: str, query: bytes) -> tuple[PetQuery, PageLinks]:
    """The page that a query asks for, and the links of its list. Raises InvalidParameter."""
    rest, cursor = split_cursor(query)
    page, links = _read_list(base, rest)
    if cursor is not None:
        page = replace(page, after_id=read_cursor(cursor, links.bound))
    return page, links


@lru_cache(maxsize=256)
def _read_list(base: str, query: bytes) -> tuple[PetQuery, PageLinks]:
    """The parameters of a list, read once for all of its pages, which differ in their cursors alone."""
    page = read_page_query(parameters_of(query))
    more = "" if page.category_id is None else f"&categoryId={page.category_id}"
    more += "&order=-id" if page.newest_first else ""
    return page, PageLinks(f"{base}/pets", page.limit, page.status, page.ids, more, bind_cursor(page))


def bind_cursor(page: PetQuery) -> int:
    """What binds a cursor to a list of animals; without category and order as by programs of 1.0.0."""
    filters = f"{page.status or '*'}|{','.join(map(str, page.ids)) if page.ids is not None else '*'}"
    if page.category_id is not None:
        filters += f"|category {page.category_id}"
    return bind(f"{filters}|newest first" if page.newest_first else filters)
