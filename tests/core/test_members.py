"""Schema for structs other than those of animals, whose bodies are in api/refused_bodies.py."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
import pytest

from petstore.core.errors import InvalidBody
from petstore.core.fields import Text
from petstore.core.members import Schema
from petstore.core.pets import PetStatus
from tests.support.cases import every_case


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """A struct with a field that no schema reads."""

    price: float


class Narrow(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A bounded integer and two optional texts."""

    at_most: Annotated[int, msgspec.Meta(ge=1, le=9)]
    status: PetStatus = PetStatus.SOLD
    free_text: str = ""


class Change(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A struct whose members are all optional."""

    at_most: Annotated[int, msgspec.Meta(ge=1, le=9)] | msgspec.UnsetType = msgspec.UNSET
    free_text: (
        Annotated[
            str,
            Text(
                re.compile("[a-z]+"),
                lambda text: None if text.islower() else "expected small letters",
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


SCHEMA = Schema(Narrow, "a change", assigned=("id", "madeAt"))
CHANGE = Schema(Change, "a change")


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


@every_case(
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


@every_case(
    ("body", "read"),
    [
        (b'{"atMost":9}', Change(9)),
        (b'{"freeText":"x"}', Change(free_text="x")),
        (rb'{"free\u0054ext":"\u0078"}', Change(free_text="x")),
        (b'{"atMost":1,"freeText":"x"}', Change(1, "x")),
    ],
)
def test_a_change_has_the_members_that_were_sent(body: bytes, read: Change) -> None:
    """The others are UNSET; with and without escapes."""
    assert CHANGE.read(body) == read


@every_case(
    ("body", "message"),
    [
        (b"{}", "Send at least one of atMost, freeText."),
        (b" { } ", "Send at least one of atMost, freeText."),
        (b'{"freeText":"X"}', "freeText: expected small letters."),
        (b'{"atMost":null}', "atMost: expected an integer, got null."),
        (b'{"freeText":null,"atMost":0}', "atMost: expected an integer from 1 to 9; "
         "freeText: expected a string, got null."),
        (b'{"atMost":1,"atMost":1}', "atMost: sent more than once."),
        (b'{"id":1,"x":2}', "id: assigned by the service, do not send it; 'x': not a member of a change."),
    ],
)  # fmt: skip
def test_faults_of_a_change(body: bytes, message: str) -> None:
    """Every member at fault is named; a change without a member is refused."""
    with pytest.raises(InvalidBody) as caught:
        CHANGE.read(body)
    assert caught.value.message == message


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
