"""Pages of animals: search, show with history, change, remove. New ones: new_pets.py."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.categories import CategoryNames, names_in
from petstore.console.history import History, history_of
from petstore.console.idempotency import NO_ACCOUNT, FormUsedUp, act_once, mark_of
from petstore.console.pet_forms import (
    Edit,
    change_between,
    changed_fields,
    merged,
    new_typed,
    read_edit,
    read_pet,
    status_choices,
    typed_in,
    typed_of,
)
from petstore.console.pet_search import Found, Search, find, read_search
from petstore.console.visit import Faults, View, Visit
from petstore.core.errors import Conflict, Invalid, PetNotFound, PetstoreError
from petstore.core.journal import About
from petstore.core.people import Role
from petstore.core.pets import Pet, PetChange, PetChangedMeanwhile
from petstore.core.values import read_int64
from petstore.transactions.store import Parts


class PetPages:
    """`/pets`, `/pets/7` and the pages below it."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [
            View("GET", "/pets", self.search),
            View("GET", "/pets/{pet_id}", self.show),
            View("POST", "/pets/{pet_id}", self.change, Role.STAFF),
            View("GET", "/pets/{pet_id}/remove", self.ask_removal, Role.STAFF),
            View("POST", "/pets/{pet_id}/remove", self.remove, Role.STAFF),
        ]

    async def search(self, visit: Visit) -> Response:
        names = await names_in(visit)
        status, faults = 200, dict[str, str]()
        try:
            search = read_search(visit)
            found = await find(visit, search)
        except Invalid as error:
            search, found = Search(), Found([])
            status, faults = 400, {error.field: error.message}
        return visit.page(
            "pets.html",
            "Animals",
            status,
            fragment="rows",
            names=names,
            statuses=status_choices(None),
            typed=visit.query,
            search=search,
            found=found,
            faults=faults,
        )

    async def show(self, visit: Visit) -> Response:
        return await self._show(visit, visit.id_of("animal"), await names_in(visit))

    async def change(self, visit: Visit) -> Response:
        pet_id, names = visit.id_of("animal"), await names_in(visit)
        edit, wanted = read_edit(pet_id, visit.form, names)
        if wanted is None:
            return await self._show(visit, pet_id, names, 400, edit)
        change = change_between(edit.before, wanted)
        if change == PetChange():
            return visit.redirect(f"pets/{pet_id}", flash="Nothing was changed.")
        try:
            await self._store.pets.change(pet_id, change, visit.actor, expected=edit.before)
        except PetChangedMeanwhile as error:
            return await self._changed_meanwhile(visit, error.present, names, edit, change)
        except Conflict as error:
            return await self._show(visit, pet_id, names, 409, edit, error.message)
        except PetNotFound:
            return await self._show(visit, pet_id, names)
        return visit.redirect(f"pets/{pet_id}", flash="Saved.")

    async def ask_removal(self, visit: Visit) -> Response:
        return await self._ask_removal(visit, visit.id_of("animal"))

    async def remove(self, visit: Visit) -> Response:
        pet_id = visit.id_of("animal")
        try:
            await self._store.pets.remove(pet_id, visit.actor)
        except Conflict as error:
            return await self._ask_removal(visit, pet_id, 409, error.message)
        except PetNotFound:
            return await self._show(visit, pet_id, await names_in(visit))
        return visit.redirect("pets", flash=f"Animal {pet_id} is removed.")

    async def _history(self, pet_id: int, names: CategoryNames, since_id: int = 0) -> History:
        about, texts = About("pet", str(pet_id)), {"categoryId": names.label}
        return await history_of(self._store.journal, about, texts, since_id=since_id)

    async def _show(
        self,
        visit: Visit,
        pet_id: int,
        names: CategoryNames,
        status: int = 200,
        edit: Edit | None = None,
        fault: str = "",
    ) -> Response:
        """The animal with its form as typed. For a removed animal, its history."""
        # The history first: a change between the two reads then counts as unseen.
        history = await self._history(pet_id, names)
        pet = await self._store.pets.get(pet_id)
        title = f"Animal {pet_id}"
        if pet is None:
            if not history.is_removed:
                raise PetNotFound(pet_id)
            return visit.page("pets_removed.html", title, 404, pet_id=pet_id, history=history)
        if edit is None:
            edit = Edit(pet, history.newest_id, typed_of(pet, names))
        return visit.page(
            "pet.html",
            title,
            status,
            pet=pet,
            edit=edit,
            statuses=status_choices(edit.before.status),
            order_id=await self._store.pets.open_order(pet_id),
            names=names,
            history=history,
            faults={**edit.typed.faults, "": fault},
        )

    async def _changed_meanwhile(
        self, visit: Visit, present: Pet, names: CategoryNames, edit: Edit, change: PetChange
    ) -> Response:
        """The present animal beside the typed form, and the changes since the form was shown."""
        history = await self._history(present.id, names, edit.seen_id)
        seen_id = history.newest_id or edit.seen_id
        typed = merged(present, change, edit.typed, names)
        return visit.page(
            "pets_changed.html",
            f"Animal {present.id} has changed meanwhile",
            409,
            pet=present,
            sent=edit.typed,
            changed=changed_fields(change),
            edit=Edit(present, seen_id, typed),
            faults=typed.faults,
            statuses=status_choices(present.status),
            order_id=await self._store.pets.open_order(present.id),
            names=names,
            history=history,
        )

    async def _ask_removal(self, visit: Visit, pet_id: int, status: int = 200, fault: str = "") -> Response:
        pet = await self._store.pets.get(pet_id)
        if pet is None:
            raise PetNotFound(pet_id)
        order_id = await self._store.pets.open_order(pet_id)
        return visit.page(
            "pets_remove.html",
            f"Remove animal {pet_id}?",
            status,
            pet=pet,
            names=await names_in(visit),
            order_id=order_id,
            fault=fault,
        )


async def ask_new(visit: Visit, error: PetstoreError | None = None) -> Response:
    names = await names_in(visit)
    category_id = read_int64(visit.query.get("category", ""))
    category = "" if category_id is None else names.written(category_id)
    return visit.page(
        "pets_new.html",
        "Add an animal",
        error=error,
        names=names,
        typed=typed_in(visit.form, names) if visit.form else new_typed(category),
        statuses=status_choices(None),
        once=mark_of(visit, used_up=isinstance(error, FormUsedUp)),
    )


async def add(visit: Visit) -> Response:
    """Sent twice, by a double click or a reload, the form adds one animal."""
    names, pets, actor = await names_in(visit), visit.store.pets, visit.actor
    try:
        wanted = read_pet(typed_in(visit.form, names), names)
        created = await act_once(visit, NO_ACCOUNT, lambda once: pets.add(wanted, actor, once))
    except (Faults, FormUsedUp) as error:
        return await ask_new(visit, error)
    pet = created.pet
    flash = f"Animal {pet.id} was added already." if created.replayed else f"Animal {pet.id} is added."
    if visit.form.get("then") == "another":
        return visit.redirect(f"pets/new?category={pet.category_id}", flash=flash)
    return visit.redirect(f"pets/{pet.id}", flash=flash)


VIEWS = [
    View("GET", "/pets/new", ask_new, Role.STAFF),
    View("POST", "/pets/new", add, Role.STAFF),
]
