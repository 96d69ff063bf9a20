"""Reads the form of an animal, and compares it with the animal that the form showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from petstore.console.categories import CategoryNames
from petstore.console.formats import sentence
from petstore.console.several import version_of
from petstore.console.visit import INCOMPLETE_FORM, Faults
from petstore.core.errors import Invalid, InvalidBody
from petstore.core.fields import Field
from petstore.core.pets import (
    FIELDS,
    TRANSITIONS,
    NewPet,
    Pet,
    PetChange,
    PetStatus,
    values_of_pet,
    written_pet,
)
from petstore.core.values import INT64_MAX, INT64_MIN, read_id, read_int64

# Fields of the form have the names of an animal's, but for the category, which has a name.
_WORDS = {field.name: field.name.removesuffix("_id") for field in FIELDS}


class Edit(msgspec.Struct, frozen=True):
    """The fields of a form as typed, the animal that it showed, and the newest journal entry at that time."""

    before: Pet
    seen_id: int
    typed: dict[str, str]


def typed_of(pet: Pet, names: CategoryNames) -> dict[str, str]:
    """The form filled in with an animal."""
    plain = zip(_WORDS.values(), written_pet(pet), strict=True)
    texts = {word: "" if value is None else str(value) for word, value in plain}
    return {**texts, "category": names.written(pet.category_id)}


def new_typed(category: str) -> dict[str, str]:
    """The form of a new animal in a category."""
    defaults = {_WORDS[each.name]: "" if each.is_required else str(each.default or "") for each in FIELDS}
    return {**defaults, "category": category}


def typed_in(form: Mapping[str, str], names: CategoryNames) -> dict[str, str]:
    """The fields as typed.

    If the form has no status (an order holds the animal), the stored one stays. So does the stored category
    if its text was not edited: the name may belong to another category by now.
    """
    typed = {word: form.get(word, "") for word in _WORDS.values()}
    typed["status"] = form.get("status", form.get("was_status", ""))
    if "was_written" in form and typed["category"] == form["was_written"]:
        category_id = read_int64(form.get("was_category", ""))
        if category_id is not None:
            typed["category"] = names.written(category_id)
    return typed


def read_pet(typed: Mapping[str, str], names: CategoryNames) -> NewPet:
    """The animal that the fields describe. Raises Faults."""
    wanted: dict[str, Any] = {}
    faults = {}
    for field in FIELDS:
        word = _WORDS[field.name]
        try:
            is_category = field.name == "category_id"
            wanted[field.name] = names.read(typed[word]) if is_category else _read(field, typed[word])
        except Invalid as error:
            faults[word] = error.message
    if faults:
        raise Faults(faults)
    return NewPet(**wanted)


def _read(field: Field, text: str) -> Any:
    """The value of a field that is written as it is. Raises Invalid."""
    if field.is_amount:
        text = text.strip()
    if not text and field.takes_null:
        return None
    if field.text is not None:
        if fault := field.text.fault(text):
            raise Invalid(field.name, sentence(fault))
        return field.read(text)
    if field.is_choice:
        if text not in list(field.kind):
            raise Invalid(field.name, f"Expected one of {', '.join(field.kind)}.")
        return field.kind(text)
    number = read_int64(text)
    if number is None:
        raise Invalid(field.name, f"Expected an integer from {INT64_MIN} to {INT64_MAX}.")
    return number


def read_edit(pet_id: int, form: Mapping[str, str], names: CategoryNames) -> Edit:
    """Raises InvalidBody for an incomplete form."""
    seen_id = 0 if form.get("seen") == "0" else read_id(form.get("seen", ""))
    try:
        was = {each.name: _read(each, form.get(f"was_{_WORDS[each.name]}", "")) for each in FIELDS}
    except Invalid:
        raise InvalidBody(INCOMPLETE_FORM) from None
    if seen_id is None:
        raise InvalidBody(INCOMPLETE_FORM)
    return Edit(Pet(pet_id, **was), seen_id, typed_in(form, names))


def change_between(before: Pet, wanted: NewPet) -> PetChange:
    """Only the fields that the form changed: another person's change of other fields stays."""
    pairs = {field.name: (getattr(before, field.name), getattr(wanted, field.name)) for field in FIELDS}
    return PetChange(**{name: new for name, (old, new) in pairs.items() if new != old})


def changed_fields(change: PetChange) -> set[str]:
    """The names of the changed fields."""
    return {word for name, word in _WORDS.items() if getattr(change, name) is not UNSET}


def merged(
    current: Pet, change: PetChange, typed: Mapping[str, str], names: CategoryNames
) -> tuple[dict[str, str], dict[str, str]]:
    """A form with the wanted changes on top of the current animal, and its faults by field."""
    now, faults = typed_of(current, names), {}
    changed = changed_fields(change)
    if change.status is not UNSET and change.status not in (current.status, *TRANSITIONS[current.status]):
        faults["status"] = f"It is {current.status} now, and can't become {change.status}."
        changed.remove("status")
    return {**now, **{word: typed[word] for word in changed}}, faults


def version_of_pet(pet: Pet) -> str:
    """See console/several.py."""
    return version_of(*values_of_pet(pet))


def status_choices(status: PetStatus | None) -> list[tuple[str, str]]:
    """The statuses that an animal may get, with its current one; all if it has none yet."""
    next_ones = set(PetStatus) if status is None else {status, *TRANSITIONS[status]}
    return [(each.value, each.value) for each in PetStatus if each in next_ones]
