"""Pages of animals: search, show with history, add, change, remove."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from petstore.console.categories import CategoryNames, names_in
from petstore.console.formats import choose, sentence
from petstore.console.idempotency import NO_ACCOUNT, FormUsedUp, act_once, mark_of
from petstore.console.journal import History, history_of
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
from petstore.console.visit import INCOMPLETE_ADDRESS, Faults, View, Visit, address
from petstore.core.errors import Conflict, Invalid, InvalidParameter, PetNotFound, PetstoreError
from petstore.core.people import Role
from petstore.core.pets import STATUSES, NamePlace, NameQuery, PageQuery, Pet, PetChange, PetChangedMeanwhile
from petstore.core.values import name_fault, read_id, read_int64

_ROWS = 50


async def search(visit: Visit) -> Response:
    wanted, found, error = NameQuery(""), _Found(), None
    try:
        wanted = _read_search(visit)
        found = await (_find_by_name(visit, wanted) if wanted.prefix else _find(visit, wanted))
    except Invalid as fault:
        wanted, error = NameQuery(""), fault
    asked = {
        "q": wanted.prefix,
        "category": "" if wanted.category_id is None else str(wanted.category_id),
        "status": wanted.status or "",
        "order": "oldest" if visit.query.get("order") == "oldest" else "",
    }
    go_on = found.further
    return visit.page(
        "pets.html",
        "Animals",
        error=error,
        fragment="rows",
        names=await names_in(visit),
        statuses=status_choices(None),
        typed=visit.query,
        wanted=wanted,
        found=found,
        first=address("pets", asked) if wanted.after else "",
        next=address("pets", {**asked, "after": go_on.id, "after_name": go_on.name}) if go_on else "",
    )


def _read_search(visit: Visit) -> NameQuery:
    """Without a text, only the identifier of `after` counts. Raises Invalid and InvalidParameter."""
    text, category, status = (visit.query.get(name, "") for name in ("q", "category", "status"))
    text = "" if text.isspace() else text
    fault = name_fault(text) if text else None
    if fault is not None:
        raise Invalid("q", sentence(fault))
    category_id = read_int64(category)
    if category and category_id is None:
        raise Invalid("category", "Choose a category.")
    if status and status not in STATUSES:
        raise Invalid("status", choose(STATUSES))
    after_id, name = visit.place("after"), visit.query.get("after_name", "")
    if after_id and text and name_fault(name) is not None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    after = NamePlace(name, after_id) if after_id else None
    return NameQuery(text, _ROWS, STATUSES.get(status), category_id, after)


class _Found(msgspec.Struct, frozen=True):
    """A page of animals, and where the next one begins. `is_cut`: a bounded scan ended there."""

    pets: list[Pet] = []
    further: NamePlace | None = None
    is_cut: bool = False


async def _find(visit: Visit, wanted: NameQuery) -> _Found:
    """One page, sorted by identifier."""
    after_id = wanted.after.id if wanted.after else 0
    newest_first = visit.query.get("order") != "oldest"
    page = await visit.store.pets.page(
        PageQuery(_ROWS, wanted.status, None, after_id, wanted.category_id, newest_first)
    )
    return _Found(page.pets, NamePlace("", page.pets[-1].id) if page.has_more else None)


async def _find_by_name(visit: Visit, wanted: NameQuery) -> _Found:
    """One page, sorted by name. An animal whose identifier is the text comes first."""
    pets, first, pet_id = visit.store.pets, list[Pet](), read_id(wanted.prefix)
    if pet_id is not None and wanted.after is None:
        first = (await pets.page(PageQuery(1, wanted.status, (pet_id,), 0, wanted.category_id))).pets
    named = await pets.find_by_name(wanted)
    found = first + [pet for pet in named.pets if pet.id != pet_id]
    return _Found(found, named.further, named.further is not None and len(named.pets) < _ROWS)


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


async def show(visit: Visit, edit: Edit | None = None, error: PetstoreError | None = None) -> Response:
    """The animal with its form as typed. For a removed animal, its history."""
    pet_id, names = visit.id_of("animal"), await names_in(visit)
    # The history first: a change between the two reads then counts as unseen.
    history = await _history_of(visit, pet_id, names)
    pet = await visit.store.pets.get(pet_id)
    title = f"Animal {pet_id}"
    if pet is None:
        if not history.is_removed:
            raise PetNotFound(pet_id)
        return visit.page("removed.html", title, 404, what=f"animal {pet_id}", history=history)
    edit = edit or Edit(pet, history.newest_id, typed_of(pet, names))
    return visit.page(
        "pet.html",
        title,
        error=error,
        pet=pet,
        edit=edit,
        statuses=status_choices(edit.before.status),
        order_id=await visit.store.pets.open_order(pet_id),
        names=names,
        history=history,
    )


async def change(visit: Visit) -> Response:
    pet_id, names = visit.id_of("animal"), await names_in(visit)
    edit = read_edit(pet_id, visit.form, names)
    try:
        change = change_between(edit.before, read_pet(edit.typed, names))
    except Faults as error:
        return await show(visit, edit, error)
    if change == PetChange():
        return visit.redirect(f"pets/{pet_id}", flash="Nothing was changed.")
    try:
        await visit.store.pets.change(pet_id, change, visit.actor, expected=edit.before)
    except PetChangedMeanwhile as error:
        return await _changed_meanwhile(visit, error.present, names, edit, change)
    except Conflict as error:
        return await show(visit, edit, error)
    except PetNotFound:
        return await show(visit)
    return visit.redirect(f"pets/{pet_id}", flash="Saved.")


async def _changed_meanwhile(
    visit: Visit, present: Pet, names: CategoryNames, edit: Edit, change: PetChange
) -> Response:
    """The present animal beside the typed form, and the changes since the form was shown."""
    history = await _history_of(visit, present.id, names, edit.seen_id)
    typed, faults = merged(present, change, edit.typed, names)
    return visit.page(
        "pets_changed.html",
        f"Animal {present.id} has changed meanwhile",
        409,
        faults=faults,
        pet=present,
        sent=edit.typed,
        changed=changed_fields(change),
        edit=Edit(present, history.newest_id or edit.seen_id, typed),
        statuses=status_choices(present.status),
        order_id=await visit.store.pets.open_order(present.id),
        names=names,
        history=history,
    )


async def _history_of(visit: Visit, pet_id: int, names: CategoryNames, since_id: int = 0) -> History:
    return await history_of(visit, "pet", pet_id, {"categoryId": names.label}, since_id=since_id)


async def ask_removal(visit: Visit, error: Conflict | None = None) -> Response:
    pet_id = visit.id_of("animal")
    pet = await visit.store.pets.get(pet_id)
    if pet is None:
        raise PetNotFound(pet_id)
    return visit.page(
        "pets_remove.html",
        f"Remove animal {pet_id}?",
        error=error,
        pet=pet,
        names=await names_in(visit),
        order_id=await visit.store.pets.open_order(pet_id),
    )


async def remove(visit: Visit) -> Response:
    pet_id = visit.id_of("animal")
    try:
        await visit.store.pets.remove(pet_id, visit.actor)
    except Conflict as error:
        return await ask_removal(visit, error)
    except PetNotFound:
        return await show(visit)
    return visit.redirect("pets", flash=f"Animal {pet_id} is removed.")


VIEWS = [
    View("GET", "/pets", search),
    View("GET", "/pets/new", ask_new, Role.STAFF),
    View("POST", "/pets/new", add, Role.STAFF),
    View("GET", "/pets/{pet_id}", show),
    View("POST", "/pets/{pet_id}", change, Role.STAFF),
    View("GET", "/pets/{pet_id}/remove", ask_removal, Role.STAFF),
    View("POST", "/pets/{pet_id}/remove", remove, Role.STAFF),
]
