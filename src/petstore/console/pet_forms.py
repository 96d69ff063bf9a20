"""Reads the form of an animal and finds the changed fields."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from petstore.console.category_names import CategoryNames
from petstore.console.formats import sentence
from petstore.console.visit import INCOMPLETE_FORM
from petstore.core.errors import Invalid, InvalidBody
from petstore.core.integers import read_id, read_int64
from petstore.core.pets import STATUSES, TRANSITIONS, NewPet, Pet, PetChange, PetStatus, name_fault


class Typed(msgspec.Struct):
    """The fields of the form as typed, and their faults by field."""

    name: str = ""
    category: str = ""
    status: str = PetStatus.AVAILABLE.value
    faults: dict[str, str] = {}


class Edit(msgspec.Struct):
    """A sent form, with the animal that it showed and the newest journal entry at that time."""

    before: Pet
    seen_id: int
    typed: Typed


def typed_of(pet: Pet, names: CategoryNames) -> Typed:
    """The form filled in with an animal."""
    return Typed(pet.name, names.written(pet.category_id), pet.status.value)


def read_typed(form: Mapping[str, str], names: CategoryNames) -> tuple[Typed, NewPet | None]:
    """The typed fields and, without faults, the animal that they describe.

    If the form has no status (an order holds the animal), the stored one stays.
    """
    typed = Typed(
        form.get("name", ""), form.get("category", ""), form.get("status", form.get("was_status", "")), {}
    )
    fault = name_fault(typed.name)
    if fault is not None:
        typed.faults["name"] = sentence(fault)
    category_id = _untouched_category(form)
    if category_id is not None:
        typed.category = names.written(category_id)
    else:
        try:
            category_id = names.read(typed.category)
        except Invalid as error:
            typed.faults[error.field] = error.message
    if typed.status not in STATUSES:
        typed.faults["status"] = f"Expected one of {', '.join(STATUSES)}."
    if typed.faults or category_id is None:
        return typed, None
    return typed, NewPet(typed.name, category_id, STATUSES[typed.status])


def _untouched_category(form: Mapping[str, str]) -> int | None:
    """The stored category id if its text was not edited: the name may belong to another category by now."""
    is_same = "was_written" in form and form.get("category") == form["was_written"]
    return read_int64(form.get("was_category", "")) if is_same else None


def read_edit(pet_id: int, form: Mapping[str, str], names: CategoryNames) -> tuple[Edit, NewPet | None]:
    """Raises InvalidBody for an incomplete form."""
    category_id, status = read_int64(form.get("was_category", "")), form.get("was_status", "")
    seen_id = 0 if form.get("seen") == "0" else read_id(form.get("seen", ""))
    name = form.get("was_name", "")
    if category_id is None or status not in STATUSES or seen_id is None or name_fault(name) is not None:
        raise InvalidBody(INCOMPLETE_FORM)
    typed, wanted = read_typed(form, names)
    return Edit(Pet(pet_id, name, category_id, STATUSES[status]), seen_id, typed), wanted


def change_between(before: Pet, wanted: NewPet) -> PetChange:
    """Only the fields that the form changed: another person's change of other fields stays."""
    return PetChange(
        UNSET if wanted.name == before.name else wanted.name,
        UNSET if wanted.category_id == before.category_id else wanted.category_id,
        UNSET if wanted.status is before.status else wanted.status,
    )


def changed_fields(change: PetChange) -> set[str]:
    """The names of the changed fields."""
    values = {"name": change.name, "category": change.category_id, "status": change.status}
    return {field for field, value in values.items() if value is not UNSET}


def merged(present: Pet, change: PetChange, typed: Typed, names: CategoryNames) -> Typed:
    """A form with the wanted changes on top of the present animal."""
    now = typed_of(present, names)
    changed = changed_fields(change)
    if "name" in changed:
        now.name = typed.name
    if "category" in changed:
        now.category = typed.category
    if change.status is not UNSET:
        if change.status in (present.status, *TRANSITIONS[present.status]):
            now.status = typed.status
        else:
            now.faults["status"] = f"It is {present.status} now, and can't become {change.status}."
    return now


def status_choices(status: PetStatus | None) -> list[tuple[str, str]]:
    """The statuses that an animal may get, with its present one; all if it has none yet."""
    next_ones = set(PetStatus) if status is None else {status, *TRANSITIONS[status]}
    return [(each.value, each.value) for each in PetStatus if each in next_ones]
