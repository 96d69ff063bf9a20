"""The form of a new animal. Sent twice, by a double click or a reload, it adds one animal."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.category_names import CategoryNames, names_in
from petstore.console.idempotency import NO_ACCOUNT, FormUsedUp, act_once, mark_of
from petstore.console.pet_forms import Typed, new_typed, read_typed, status_choices
from petstore.console.visit import View, Visit
from petstore.core.people import Role
from petstore.core.values import read_int64
from petstore.transactions.store import Parts


class NewPetPages:
    """`/pets/new`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("GET", "/pets/new", self.new, Role.STAFF),
            View("POST", "/pets/new", self.add, Role.STAFF),
        ]

    async def new(self, visit: Visit) -> Response:
        names = await names_in(self._store.categories)
        category_id = read_int64(visit.query.get("category", ""))
        typed = new_typed("" if category_id is None else names.written(category_id))
        return _page(visit, names, typed)

    async def add(self, visit: Visit) -> Response:
        names, pets = await names_in(self._store.categories), self._store.pets
        typed, wanted = read_typed(visit.form, names)
        if wanted is None:
            return _page(visit, names, typed, 400)
        try:
            created = await act_once(visit, NO_ACCOUNT, lambda once: pets.add(wanted, visit.actor, once))
        except FormUsedUp as error:
            return _page(visit, names, typed, 409, error.message)
        pet = created.pet
        flash = f"Animal {pet.id} was added already." if created.replayed else f"Animal {pet.id} is added."
        if visit.form.get("then") == "another":
            return visit.redirect(f"pets/new?category={pet.category_id}", flash=flash)
        return visit.redirect(f"pets/{pet.id}", flash=flash)


def _page(visit: Visit, names: CategoryNames, typed: Typed, status: int = 200, fault: str = "") -> Response:
    return visit.page(
        "pets_new.html",
        "Add an animal",
        status,
        names=names,
        typed=typed,
        statuses=status_choices(None),
        once=mark_of(visit, used_up=bool(fault)),
        fault=fault,
    )
