"""The operations on animals: listPets, createPet, getPet. Each reads, asks the repository and answers."""

from __future__ import annotations

from collections.abc import Awaitable

from petstore.api.deprecation import Deprecation
from petstore.api.pipeline import cursor
from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.query import read_page_query, read_pet_id
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Header, Response, make_response, pet_body, pets_body
from petstore.api.pipeline.schema import Schema
from petstore.core.clock import Clock
from petstore.core.errors import NotFound
from petstore.core.pets import Idempotency, NewPet, PageQuery, PetRepository, name_fault
from petstore.core.versions import Version

NEW_PET = Schema(NewPet, "a new animal", name=name_fault)


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
        self.kept = PageCache()

    def list_pets(self, request: Request) -> Response | Awaitable[Response]:
        """GET /pets: a page in ascending order of id, its neighbours in `Link`."""
        assert request.decision is not None  # the gate was passed
        version = request.decision.versions.catalogue
        return self.kept.find(request.query, version) or self._read_page(request, version)

    async def _read_page(self, request: Request, version: Version | None) -> Response:
        query = read_page_query(request.query)
        page = await self._pets.page(query)
        links = self._links(query, page.pets[-1].id if page.has_more else None)
        reply = make_response(200, pets_body(page.pets), (b"link", links))
        self.kept.keep(request.query, version, reply)
        return reply

    async def create_pet(self, request: Request) -> Response:
        """POST /pets: 201 once the animal is durable."""
        check_body_headers(request)
        key = request.idempotency_key()
        body = await read_body(request.receive, self._body_timeout_seconds)
        new = NEW_PET.read(body)
        assert request.caller is not None
        idempotency = None if key is None else Idempotency(request.caller.account_id, key)
        created = await self._pets.add(new, idempotency)
        headers: list[Header] = [(b"location", self._location(created.pet.id).encode("ascii"))]
        if created.replayed:
            headers.append((b"idempotency-replayed", b"true"))
        return make_response(201, pet_body(created.pet), *headers)

    async def get_pet(self, request: Request) -> Response:
        """GET /pets/{petId}, deprecated; its headers are set by the pipeline on every answer."""
        pet_id = pet_id_of(request)
        if self._is_removed():
            raise self._deprecation.gone(pet_id)
        pet = None if pet_id is None else await self._pets.get(pet_id)
        if pet is None:
            raise NotFound("There is no such animal.")
        return make_response(200, pet_body(pet))

    def get_pet_headers(self, request: Request) -> list[Header]:
        """What every answer of getPet says about its deprecation."""
        return self._deprecation.headers(pet_id_of(request))

    def _is_removed(self) -> bool:
        return self._clock.now_ms() >= self._deprecation.removal_at_ms

    def _location(self, pet_id: int) -> str:
        if self._is_removed():
            return self._deprecation.successor(pet_id)
        return f"{self._base}/pets/{pet_id}"

    def _links(self, query: PageQuery, next_after: int | None) -> bytes:
        """RFC 8288: `next` with every filter kept when there is more, `first` always."""
        target = f"{self._base}/pets?limit={query.limit}"
        if query.status is not None:
            target += f"&status={query.status}"
        for pet_id in query.ids or ():
            target += f"&id={pet_id}"
        first = f'<{target}>; rel="first"'
        if next_after is None:
            return first.encode("ascii")
        return f'<{target}&cursor={cursor.write(next_after, query)}>; rel="next", {first}'.encode("ascii")


def pet_id_of(request: Request) -> int | None:
    """The identifier in the path, or None when it is not a canonical one."""
    return read_pet_id(request.path.rpartition(b"/")[2])
