"""Schema for members that are no JSON, and its bounds; bodies are in api/refused_bodies.py."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from petstore.core.errors import InvalidBody
from petstore.core.members import Schema
from petstore.core.pets import PetStatus


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """A struct with a field that no schema reads."""

    price: float


class Narrow(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A bounded integer and an optional choice."""

    at_most: Annotated[int, msgspec.Meta(ge=1, le=9)]
    status: PetStatus = PetStatus.SOLD


SCHEMA = Schema(Narrow, "a change", assigned=("id", "madeAt"))


def test_members_that_are_no_json() -> None:
    """A row of a stock list follows the rules of a body, repeated members included."""
    assert SCHEMA.read_members([("atMost", 9), ("status", "sold")]) == Narrow(9)
    with pytest.raises(InvalidBody) as caught:
        SCHEMA.read_members([("status", "lost"), ("status", "sold"), ("price", "9")])
    assert caught.value.message == (
        "status: sent more than once; 'price': not a member of a change; atMost: required."
    )


def test_ten_faults_are_enough() -> None:
    """A body of unknown names costs no more than its first ten: each is compared with those before it."""
    shown = 0

    class Name(str):
        __slots__ = ()

        def __repr__(self) -> str:
            nonlocal shown
            shown += 1
            return super().__repr__()

    with pytest.raises(InvalidBody) as refused:
        SCHEMA.read_members([(Name(number), 0) for number in range(10_000)])
    assert refused.value.message.count("not a member of a change") == shown == 10


def test_a_field_of_another_type_is_a_mistake_of_ours() -> None:
    """It is found at the start, not by a request."""
    with pytest.raises(TypeError, match="price"):
        Schema(Whole, "a whole")
