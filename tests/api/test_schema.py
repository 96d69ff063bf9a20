"""Schema for structs other than NewPet, whose bodies are test_hostile_bodies.py's."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from petstore.api.pipeline.schema import Schema
from petstore.core.errors import InvalidBody
from petstore.core.pets import PetStatus


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """A struct with a field that no schema reads."""

    price: float


class Narrow(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A bounded integer and two optional texts."""

    at_most: Annotated[int, msgspec.Meta(ge=1, le=9)]
    status: PetStatus = PetStatus.SOLD
    free_text: str = ""


SCHEMA = Schema(Narrow, "a change", assigned=("id", "madeAt"))


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b'{"atMost":9}', Narrow(9)),
        (b'{"atMost":1,"status":"pending","freeText":"x"}', Narrow(1, PetStatus.PENDING, "x")),
        (rb'{"\u0061tMost":1,"freeText":"\n"}', Narrow(1, PetStatus.SOLD, "\n")),
    ],
)
def test_the_struct_in_a_body(body: bytes, read: Narrow) -> None:
    """Members by their JSON names; defaults for those that are absent; with and without escapes."""
    assert SCHEMA.read(body) == read


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "atMost: required."),
        (b'{"atMost":10}', "atMost: expected an integer from 1 to 9."),
        (b'{"atMost":0}', "atMost: expected an integer from 1 to 9."),
        (b'{"atMost":1,"madeAt":1}', "madeAt: assigned by the service, do not send it."),
        (b'{"atMost":1,"at_most":1}', "'at_most': not a member of a change."),
        (b'{"atMost":1,"status":null}', "status: expected a string, got null."),
        (b'{"atMost":1,"status":""}', "status: expected one of available, pending, sold."),
    ],
)
def test_faults(body: bytes, message: str) -> None:
    """Bounds, choices and required members are those of the struct; the noun is the schema's."""
    with pytest.raises(InvalidBody) as caught:
        SCHEMA.read(body)
    assert caught.value.message == message


def test_a_field_of_another_type_is_a_mistake_of_ours() -> None:
    """It is found at the start, not by a request."""
    with pytest.raises(TypeError, match="price"):
        Schema(Whole, "a whole")
