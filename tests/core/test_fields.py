"""Fields of structs: what a field's type says of it, and that nothing of staff is published."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
import pytest

from petstore.core.errors import InvalidBody
from petstore.core.fields import STAFF, Audience, Text, fields_of, published, values_of
from petstore.core.members import Schema
from petstore.core.pets import NewPet, Pet, PetChange, PetStatus
from petstore.core.values import Int64

SMALL = Text(lambda _: "expected small letters", re.compile("[a-z]*"))
Note = Annotated[str | None, SMALL, STAFF]


class Bird(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A struct with a field that only staff see."""

    ring_number: Int64
    status: PetStatus = PetStatus.AVAILABLE
    note: Note = None


class BirdChange(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A change of it."""

    status: PetStatus | msgspec.UnsetType = msgspec.UNSET
    note: Note | msgspec.UnsetType = msgspec.UNSET


class Egg(msgspec.Struct, frozen=True):
    """A struct without such a field."""

    bird: Int64


BIRD = Bird(7, PetStatus.SOLD, "limps")


def test_a_type_says_all_of_its_field() -> None:
    """It says the column, the name in JSON, the kind, the rule and the audience."""
    ring, status, note = fields_of(Bird)
    assert [field.name for field in (ring, status, note)] == ["ring_number", "status", "note"]
    assert (ring.member, ring.kind, ring.is_required, ring.text) == ("ringNumber", int, True, None)
    assert (status.kind, status.is_choice, status.default) == (PetStatus, True, PetStatus.AVAILABLE)
    assert (note.kind, note.takes_null, note.text, note.audience) == (str, True, SMALL, STAFF)
    assert {ring.audience, status.audience} == {Audience.PUBLIC}


def test_values_are_those_of_columns() -> None:
    """A status is its text."""
    assert values_of(fields_of(Bird))(BIRD) == (7, "sold", "limps")


def test_clients_never_see_a_field_of_staff() -> None:
    """A struct without such fields is what they see."""
    shown = msgspec.convert(BIRD, published(Bird), from_attributes=True)
    assert msgspec.json.encode(shown) == b'{"ringNumber":7,"status":"sold"}'
    assert published(Egg) is Egg


def test_clients_never_send_a_field_of_staff() -> None:
    """A schema for clients refuses a field of staff as no member; one for staff reads it by its rule."""
    assert Schema(Bird, "a bird").read(b'{"ringNumber":7}') == Bird(7)
    with pytest.raises(InvalidBody, match="note': not a member of a bird"):
        Schema(Bird, "a bird").read(b'{"ringNumber":7,"note":"limps"}')
    assert Schema(BirdChange, "a change").read(b'{"status":"sold"}') == BirdChange(PetStatus.SOLD)
    with pytest.raises(InvalidBody, match="note': not a member of a change"):
        Schema(BirdChange, "a change").read(b'{"note":"limps"}')
    staff = Schema(Bird, "a bird", audience=STAFF)
    assert staff.read(b'{"ringNumber":7,"note":"limps"}') == Bird(7, note="limps")
    with pytest.raises(InvalidBody, match="note: expected small letters"):
        staff.read(b'{"ringNumber":7,"note":"LIMPS"}')


def test_the_structs_of_an_animal_agree() -> None:
    """A member of NewPet is one of Pet and of PetChange, with the same type, rule and audience."""
    of_new = [(field.name, field.kind, field.text, field.audience) for field in fields_of(NewPet)]
    of_change = [(field.name, field.kind, field.text, field.audience) for field in fields_of(PetChange)]
    of_pet = [(field.name, field.kind, field.text, field.audience) for field in fields_of(Pet)]
    assert of_change == of_new
    assert of_pet == [("id", int, None, Audience.PUBLIC), *of_new]
