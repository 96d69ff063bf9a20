"""Pages of one animal: show with history, add, change, remove, and a label."""

from __future__ import annotations

from msgspec import UNSET
from starlette.responses import Response

from petstore.console.barcodes import barcode
from petstore.console.categories import CategoryNames, names_in
from petstore.console.confirmations import about_status, pending_remark
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
    version_of_pet,
)
from petstore.console.several import undo_mark
from petstore.console.visit import NOTHING_CHANGED, Faults, View, Visit, asks_again
from petstore.core.errors import Conflict, PetNotFound
from petstore.core.people import Role
from petstore.core.pets import Pet, PetChange, PetChangedMeanwhile
from petstore.core.values import read_int64


async def ask_new(visit: Visit) -> Response:
    names = await names_in(visit)
    category_id = read_int64(visit.query.get("category", ""))
    category = "" if category_id is None else names.written(category_id)
    return visit.page(
        "pets_new.html",
        "Add an animal",
        names=names,
        typed=typed_in(visit.form, names) if visit.form else new_typed(category),
        statuses=status_choices(None),
        once=mark_of(visit),
    )


@asks_again(ask_new, Faults, FormUsedUp)
async def add(visit: Visit) -> Response:
    """Sent twice, by a double click or a reload, the form adds one animal."""
    names, pets, actor = await names_in(visit), visit.store.pets, visit.actor
    wanted = read_pet(typed_in(visit.form, names), names)
    created = await act_once(visit, NO_ACCOUNT, lambda once: pets.add(wanted, actor, once))
    pet = created.pet
    flash = f"Animal {pet.id} was added already." if created.replayed else f"Animal {pet.id} is added."
    flash += pending_remark(pet.status)
    if visit.form.get("then") == "another":
        return visit.redirect(f"pets/new?category={pet.category_id}", flash=flash)
    return visit.redirect(f"pets/{pet.id}", flash=flash)


async def show(visit: Visit, edit: Edit | None = None) -> Response:
    """The animal with its form as typed. For a removed animal, its history."""
    pet_id, names = visit.id_of("animal"), await names_in(visit)
    # The history first: a change between the two reads then counts as unseen.
    history = await _history_of(visit, pet_id, names)
    pet = await visit.store.pets.get_or_none(pet_id)
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
        visit.refuse(error)
        return await show(visit, edit)
    if change == PetChange():
        return visit.redirect(f"pets/{pet_id}", flash=NOTHING_CHANGED)
    status = edit.before.status if change.status is UNSET else change.status
    try:
        visit.check_sure(await about_status(visit, pet_id, edit.before.status, status))
        pet = await visit.store.pets.change(pet_id, change, visit.actor, expected=edit.before)
    except PetChangedMeanwhile as error:
        return await _changed_meanwhile(visit, error.current, names, edit, change)
    except Conflict as error:
        visit.refuse(error)
        return await show(visit, edit)
    except PetNotFound:
        return await show(visit)
    remark = "" if change.status is UNSET else pending_remark(status)
    return visit.redirect(
        f"pets/{pet_id}", flash=f"Saved.{remark}", undo=[undo_mark("pet", pet_id, version_of_pet(pet))]
    )


async def _changed_meanwhile(
    visit: Visit, current: Pet, names: CategoryNames, edit: Edit, change: PetChange
) -> Response:
    """The current animal beside the typed form, and the changes since the form was shown."""
    history = await _history_of(visit, current.id, names, edit.seen_id)
    typed, faults = merged(current, change, edit.typed, names)
    return visit.page(
        "pets_changed.html",
        f"Animal {current.id} has changed meanwhile",
        409,
        named=current.name,
        faults=faults,
        pet=current,
        by_self={line.entry.actor for line in history.lines} == {visit.actor} and not history.older,
        sent=edit.typed,
        changed=changed_fields(change),
        edit=Edit(current, history.newest_id or edit.seen_id, typed),
        statuses=status_choices(current.status),
        order_id=await visit.store.pets.open_order(current.id),
        names=names,
        history=history,
    )


async def _history_of(visit: Visit, pet_id: int, names: CategoryNames, since_id: int = 0) -> History:
    return await history_of(visit, "pet", pet_id, {"categoryId": names.label}, since_id=since_id)


async def ask_removal(visit: Visit) -> Response:
    pet = await visit.store.pets.get(visit.id_of("animal"))
    return visit.page(
        "pets_remove.html",
        f"Remove animal {pet.id}?",
        named=pet.name,
        pet=pet,
        names=await names_in(visit),
        order_id=await visit.store.pets.open_order(pet.id),
    )


@asks_again(ask_removal, Conflict)
async def remove(visit: Visit) -> Response:
    pet_id = visit.id_of("animal")
    try:
        await visit.store.pets.remove(pet_id, visit.actor)
    except PetNotFound:
        return await show(visit)
    return visit.redirect("pets", flash=f"Animal {pet_id} is removed.")


async def show_label(visit: Visit) -> Response:
    """The label of its cage, for paper."""
    pet = await visit.store.pets.get(visit.id_of("animal"))
    return visit.page(
        "pets_label.html",
        f"Label of animal {pet.id}",
        named=pet.name,
        pet=pet,
        names=await names_in(visit),
        barcode=barcode(pet.id),
    )


VIEWS = [
    View("GET", "/pets/new", ask_new, Role.STAFF),
    View("POST", "/pets/new", add, Role.STAFF),
    View("GET", "/pets/{pet_id}", show),
    View("POST", "/pets/{pet_id}", change, Role.STAFF),
    View("GET", "/pets/{pet_id}/label", show_label),
    View("GET", "/pets/{pet_id}/remove", ask_removal, Role.STAFF),
    View("POST", "/pets/{pet_id}/remove", remove, Role.STAFF),
]
