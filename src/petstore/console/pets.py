"""Pages of animals: search, show with history, add, change, remove."""

from __future__ import annotations

import msgspec
from msgspec import UNSET
from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.barcodes import barcode
from petstore.console.categories import CategoryNames, names_in, with_animals
from petstore.console.doubts import about_status, pending_remark
from petstore.console.formats import choose, sentence
from petstore.console.idempotency import NO_ACCOUNT, FormUsedUp, act_once, mark_of
from petstore.console.journal import History, history_of
from petstore.console.lists import Turned, links, total, turn
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
    version_of_pet,
)
from petstore.console.rows import PETS
from petstore.console.several import ROWS_MAX, undo_mark
from petstore.console.visit import NOTHING_CHANGED, Faults, View, Visit, address
from petstore.core.errors import Conflict, Invalid, PetNotFound, PetstoreError
from petstore.core.people import Role
from petstore.core.pets import STATUSES, NameQuery, PageQuery, Pet, PetChange, PetChangedMeanwhile
from petstore.core.search import Kind, number_in
from petstore.core.values import name_fault, read_id, read_int64
from petstore.transactions.search import SearchQuery

_ROWS = ROWS_MAX


async def search(visit: Visit) -> Response:
    text, wanted, found, error = "", PageQuery(), FoundPets(), None
    turned, count = Turned[Pet]([]), ""
    try:
        text, wanted = read_search(visit)
        if text:
            found = await find_pets(visit, text, wanted)
            turned = Turned(found.pets, not wanted.after_id, following=found.further)
        else:
            turned, count = await _list(visit, wanted)
    except Invalid as fault:
        error = fault
    asked = {
        "q": text,
        "category": "" if wanted.category_id is None else str(wanted.category_id),
        "status": wanted.status or "",
        "order": "" if wanted.newest_first else "oldest",
    }
    other_way = address("pets", {**asked, "order": "oldest" if wanted.newest_first else ""})
    return visit.page(
        "pets.html",
        "Animals",
        error=error,
        fragment="rows",
        names=await names_in(visit),
        categories=await with_animals(visit),
        statuses=status_choices(None),
        typed=visit.query,
        wanted=wanted,
        text=text,
        found=found,
        rows=turned.rows,
        count=count,
        version_of=version_of_pet,
        several=PETS,
        sorts={"#Number": (other_way, "descending" if wanted.newest_first else "ascending")},
        clear="pets" if any(asked.values()) else "",
        **links("pets", asked, turned),
    )


def read_search(visit: Visit) -> tuple[str, PageQuery]:
    """A text, and which animals of it. Raises Invalid and InvalidParameter."""
    text, category, status = visit.asked("q", "category", "status").values()
    fault = name_fault(text) if text else None
    if fault is not None:
        raise Invalid("q", sentence(fault))
    category_id = read_int64(category)
    if category and category_id is None:
        raise Invalid("category", "Choose a category.")
    if status and status not in STATUSES:
        raise Invalid("status", choose(STATUSES))
    newest_first = visit.query.get("order") != "oldest"
    return text, PageQuery(_ROWS, STATUSES.get(status), None, visit.place("after"), category_id, newest_first)


class FoundPets(msgspec.Struct, frozen=True):
    """A page of animals, and where the next one begins; 0 at the end.

    `is_cut`, `is_late`: as of transactions.search.Found. Without `is_built` they are those whose names begin
    with the text.
    """

    pets: list[Pet] = []
    further: int = 0
    is_cut: bool = False
    is_late: bool = False
    is_built: bool = True


async def _list(visit: Visit, wanted: PageQuery) -> tuple[Turned[Pet], str]:
    """The page, and the number of all animals that match."""

    async def read(after_id: int, newest_first: bool) -> tuple[list[Pet], bool]:
        page = await visit.store.pets.page(replace(wanted, after_id=after_id, newest_first=newest_first))
        return page.pets, page.has_more

    turned = await turn(visit, read, wanted.newest_first)
    return turned, await total(turned, lambda: visit.store.pets.count(wanted))


async def find_pets(visit: Visit, text: str, wanted: PageQuery) -> FoundPets:
    """One page of those with the words in their names. An animal whose number is the text comes first."""
    pets, first, number = visit.store.pets, list[Pet](), number_in(text)
    filters = {"status": wanted.status, "category_id": wanted.category_id}
    if number is not None and not wanted.after_id:
        by_number = replace(wanted, ids=(number,))
        first = (await pets.page(by_number)).pets if read_id(str(number)) else []
    found = await visit.store.search.find(
        SearchQuery(
            Kind.PETS,
            text,
            wanted.limit,
            wanted.after_id,
            wanted.newest_first,
            {name: value for name, value in filters.items() if value is not None},
        )
    )
    if found is None:
        query = NameQuery(text, wanted.limit, wanted.status, wanted.category_id)
        named = (await pets.find_by_name(query)).pets
    else:
        of_ids = PageQuery(wanted.limit, ids=found.ids, newest_first=wanted.newest_first)
        named = (await pets.page(of_ids)).pets if found.ids else []
    listed = first + [pet for pet in named if pet.id != number]
    if found is None:
        return FoundPets(listed, is_built=False)
    return FoundPets(listed, found.further, found.is_cut, found.is_late)


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
    flash += pending_remark(pet.status)
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
        named=pet.name,
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
        return visit.redirect(f"pets/{pet_id}", flash=NOTHING_CHANGED)
    status = edit.before.status if change.status is UNSET else change.status
    try:
        visit.check_sure(await about_status(visit, pet_id, edit.before.status, status))
        pet = await visit.store.pets.change(pet_id, change, visit.actor, expected=edit.before)
    except PetChangedMeanwhile as error:
        return await _changed_meanwhile(visit, error.present, names, edit, change)
    except Conflict as error:
        return await show(visit, edit, error)
    except PetNotFound:
        return await show(visit)
    remark = "" if change.status is UNSET else pending_remark(status)
    return visit.redirect(
        f"pets/{pet_id}", flash=f"Saved.{remark}", undo=[undo_mark("pet", pet_id, version_of_pet(pet))]
    )


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
        named=present.name,
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
        named=pet.name,
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


async def show_label(visit: Visit) -> Response:
    """The label of its cage, for paper."""
    pet_id = visit.id_of("animal")
    pet = await visit.store.pets.get(pet_id)
    if pet is None:
        raise PetNotFound(pet_id)
    return visit.page(
        "pets_label.html",
        f"Label of animal {pet_id}",
        named=pet.name,
        pet=pet,
        names=await names_in(visit),
        barcode=barcode(pet_id),
    )


VIEWS = [
    View("GET", "/pets", search),
    View("GET", "/pets/new", ask_new, Role.STAFF),
    View("POST", "/pets/new", add, Role.STAFF),
    View("GET", "/pets/{pet_id}", show),
    View("POST", "/pets/{pet_id}", change, Role.STAFF),
    View("GET", "/pets/{pet_id}/label", show_label),
    View("GET", "/pets/{pet_id}/remove", ask_removal, Role.STAFF),
    View("POST", "/pets/{pet_id}/remove", remove, Role.STAFF),
]
