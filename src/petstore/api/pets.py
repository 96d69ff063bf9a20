"""The operations on animals: listPets, createPet, getPet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from petstore.api.deprecation import Deprecation
from petstore.api.pipeline import cursor
from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.request import Parameters, Request
from petstore.api.pipeline.response import Header, Response, encode, make_response
from petstore.core.clock import Clock
from petstore.core.errors import InvalidParameter, NotFound
from petstore.core.idempotency import Idempotency
from petstore.core.keys import Caller
from petstore.core.pets import (
    IDS_MAX,
    INT64_MAX,
    NEW_PET,
    PAGE_LIMIT_DEFAULT,
    PAGE_LIMIT_MAX,
    STATUSES,
    PageQuery,
    PetRepository,
)

_T = TypeVar("_T")

# int() also takes '+1', ' 1', '1_0' and full-width digits.
_CANONICAL_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
# The number for each valid text: a look-up instead of parsing.
_LIMITS = {str(limit): limit for limit in range(1, PAGE_LIMIT_MAX + 1)}
_LIMIT_EXPECTED = f"an integer from 1 to {PAGE_LIMIT_MAX}"
_STATUS_EXPECTED = f"one of {', '.join(STATUSES)}"
_GIVEN_ONCE = frozenset({"limit", "status", "cursor"})


class PetOperations:
    """Handlers by the specification's operation names."""

    def __init__(
        self,
        *,
        pets: PetRepository,
        clock: Clock,
        deprecation: Deprecation,
        reference_base: str,
        body_timeout_seconds: float,
    ) -> None:
        self._pets = pets
        self._clock = clock
        self._deprecation = deprecation
        self._base = reference_base
        self._body_timeout_seconds = body_timeout_seconds

    async def list_pets(self, request: Request, caller: Caller) -> Response:
        """GET /pets: a page in ascending order of id; `Link` refers to the first page and the next."""
        query = read_page_query(request.parameters())
        page = await self._pets.page(query)
        links = self._links(query, page.pets[-1].id if page.has_more else None)
        return make_response(200, encode(page.pets), (b"link", links))

    async def create_pet(self, request: Request, caller: Caller) -> Response:
        """POST /pets: 201 once the animal is durable."""
        check_body_headers(request)
        key = request.idempotency_key()
        new = NEW_PET.read(await read_body(request.receive, self._body_timeout_seconds))
        idempotency = None if key is None else Idempotency(caller.account_id, key)
        created = await self._pets.add(new, caller.actor, idempotency)
        headers: list[Header] = [(b"location", self._location(created.pet.id).encode("ascii"))]
        if created.replayed:
            headers.append((b"idempotency-replayed", b"true"))
        return make_response(201, encode(created.pet), *headers)

    async def get_pet(self, request: Request, caller: Caller) -> Response:
        """GET /pets/{petId}; 410 from the removal date on."""
        pet_id = _pet_id_of(request)
        if self._is_removed():
            raise self._deprecation.gone(pet_id)
        pet = None if pet_id is None else await self._pets.get(pet_id)
        if pet is None:
            raise NotFound("There is no such animal.")
        return make_response(200, encode(pet))

    def get_pet_headers(self, request: Request) -> list[Header]:
        """The headers of deprecation, for every answer of getPet."""
        return self._deprecation.headers(_pet_id_of(request))

    def _is_removed(self) -> bool:
        return self._clock.now_ms() >= self._deprecation.removal_at_ms

    def _location(self, pet_id: int) -> str:
        if self._is_removed():
            return self._deprecation.successor(pet_id)
        return f"{self._base}/pets/{pet_id}"

    def _links(self, query: PageQuery, next_after: int | None) -> bytes:
        """RFC 8288: `first`, and `next` with the same filter unless this page is the last."""
        target = f"{self._base}/pets?limit={query.limit}"
        if query.status is not None:
            target += f"&status={query.status}"
        for pet_id in query.ids or ():
            target += f"&id={pet_id}"
        first = f'<{target}>; rel="first"'
        if next_after is None:
            return first.encode("ascii")
        return f'<{target}&cursor={cursor.write(next_after, query)}>; rel="next", {first}'.encode("ascii")


def _pet_id_of(request: Request) -> int | None:
    """The identifier in the path; None unless it is canonical."""
    return _read_pet_id(request.path.rpartition(b"/")[2].decode("latin-1"))


def _read_pet_id(text: str) -> int | None:
    """A canonical positive int64; None for any other text, which no animal can have."""
    if _CANONICAL_ID.fullmatch(text) is None:
        return None
    pet_id = int(text)
    return pet_id if pet_id <= INT64_MAX else None


def read_page_query(parameters: Parameters) -> PageQuery:
    """The parameters of GET /pets. Unknown ones are ignored.

    Raises InvalidParameter, with a message that names the parameter and the values that it takes.
    """
    ids: list[int] = []
    given: dict[str, str] = {}
    for name, _, value in parameters:
        if name == "id":
            pet_id = _read_pet_id(value)
            if pet_id is None:
                raise InvalidParameter(f"id: expected an integer from 1 to {INT64_MAX}.")
            ids.append(pet_id)
        elif name in _GIVEN_ONCE:
            if name in given:
                raise InvalidParameter(f"{name}: sent more than once; send it once.")
            given[name] = value
    if len(ids) > IDS_MAX:
        raise InvalidParameter(f"id: at most {IDS_MAX} values, got {len(ids)}.")
    limit = _one_of(_LIMITS, given, "limit", _LIMIT_EXPECTED) or PAGE_LIMIT_DEFAULT
    status = _one_of(STATUSES, given, "status", _STATUS_EXPECTED)
    wanted = tuple(sorted(set(ids))) if ids else None
    after_id = cursor.read(given["cursor"], status, wanted) if "cursor" in given else 0
    return PageQuery(limit, status, wanted, after_id)


def _one_of(values: Mapping[str, _T], given: Mapping[str, str], name: str, expected: str) -> _T | None:
    """The value that the table has for a parameter's exact text; None when it was not sent."""
    text = given.get(name)
    if text is None:
        return None
    value = values.get(text)
    if value is None:
        raise InvalidParameter(f"{name}: expected {expected}.")
    return value
