"""The form of a new animal. Sent twice, by a double click or a reload, it adds one animal."""

from __future__ import annotations

import asyncio
import re
import secrets

from starlette.responses import Response

from petstore.console.category_names import CategoryNames
from petstore.console.pet_forms import Typed, read_typed, status_choices
from petstore.console.pets import Store
from petstore.console.visit import CUT_FORM, View, Visit
from petstore.core.errors import IdempotencyKeyInUse, IdempotencyKeyReused, InvalidBody
from petstore.core.idempotency import FORMS, Idempotency
from petstore.core.integers import read_int64
from petstore.core.people import Role
from petstore.core.pets import Created, NewPet

_KEY_BYTES = 16
_KEY = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
# A second click waits for the first one's animal.
_TRIES = 20
_PAUSE_SECONDS = 0.1


class NewPetPages:
    """`/pets/new`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("GET", "/pets/new", self.new, Role.STAFF),
            View("POST", "/pets/new", self.add, Role.STAFF),
        ]

    async def new(self, visit: Visit) -> Response:
        names = await self._names()
        category_id = read_int64(visit.query.get("category", ""))
        typed = Typed(category="" if category_id is None else names.written(category_id))
        return _page(visit, names, typed)

    async def add(self, visit: Visit) -> Response:
        names = await self._names()
        key = visit.form.get("once", "")
        if _KEY.fullmatch(key) is None:
            raise InvalidBody(CUT_FORM)
        typed, wanted = read_typed(visit.form, names)
        if wanted is None:
            return _page(visit, names, typed, 400, key)
        try:
            created = await self._add_once(wanted, visit.actor, Idempotency(FORMS, key))
        except IdempotencyKeyReused:
            told = "This form has added another animal already. To add this one too, press Add once more."
            return _page(visit, names, typed, 409, fault=told)
        pet = created.pet
        told = f"Animal {pet.id} was added already." if created.replayed else f"Animal {pet.id} is added."
        if visit.form.get("then") == "another":
            return visit.go(f"pets/new?category={pet.category_id}", told=told)
        return visit.go(f"pets/{pet.id}", told=told)

    async def _add_once(self, new: NewPet, actor: str, idempotency: Idempotency) -> Created:
        for _ in range(_TRIES):
            try:
                return await self._store.pets.add(new, actor, idempotency)
            except IdempotencyKeyInUse:
                await asyncio.sleep(_PAUSE_SECONDS)
        raise IdempotencyKeyInUse("This form is still being carried out. Look at the newest animals.")

    async def _names(self) -> CategoryNames:
        return CategoryNames(await self._store.categories.all())


def _page(
    visit: Visit, names: CategoryNames, typed: Typed, status: int = 200, key: str = "", *, fault: str = ""
) -> Response:
    return visit.page(
        "pets_new.html",
        "Add an animal",
        status,
        names=names,
        typed=typed,
        statuses=status_choices(None),
        once=key or secrets.token_urlsafe(_KEY_BYTES),
        fault=fault,
    )
