"""Animals: their names, their states, and how they look on the wire."""

from __future__ import annotations

import sys

import msgspec
import pytest

from petstore.core.errors import Conflict
from petstore.core.pets import Pet, PetStatus, check_transition, shown_pet
from petstore.core.values import INT64_MIN, NAME, name_fault
from tests.support.cases import every_case

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD


class TestNames:
    """1 to 255 characters, one at least that is not white space, no control characters, no surrogates."""

    @every_case(
        "name",
        [
            "x",
            "x" * 255,
            "🐕" * 255,
            " Rex",
            "Rex ",
            "\u00a0x",
            "<b>",
            "'; DROP TABLE pets; --",
            "\u202e",
        ],
    )
    def test_a_good_name(self, name: str) -> None:
        """Characters are counted, not bytes; nothing is trimmed or normalised."""
        assert name_fault(name) is None
        assert NAME.fullmatch(name)

    @every_case(
        ("name", "fault"),
        [
            ("", "expected 1 to 255 characters, got 0"),
            ("x" * 256, "expected 1 to 255 characters, got 256"),
            (" ", "not white space"),
            ("\u00a0\u2003", "not white space"),
            ("a\x00b", "control characters"),
            ("a\nb", "control characters"),
            ("\x1f x", "control characters"),
            ("x\x7f", "control characters"),
            ("x\x80", "control characters"),
            ("\x9b31m", "control characters"),
            ("x\x9f", "control characters"),
            ("\ud800", "lone surrogates"),
            ("x\udfff", "lone surrogates"),
        ],
    )
    def test_a_bad_name(self, name: str, fault: str) -> None:
        """The phrase says what is wrong with it."""
        assert fault in str(name_fault(name))
        assert NAME.fullmatch(name) is None

    @pytest.mark.slow
    def test_the_pattern_and_the_phrase_agree(self) -> None:
        """About each character there is, and beside white space about those that are no name alone."""
        for character in map(chr, range(sys.maxunicode + 1)):
            alone = name_fault(character) is None
            assert bool(NAME.fullmatch(character)) is alone, ascii(character)
            if not alone or character < "\u3100":
                name = f" {character}"
                assert bool(NAME.fullmatch(name)) is (name_fault(name) is None), ascii(name)


@every_case(
    ("before", "after", "allowed"),
    [
        (AVAILABLE, AVAILABLE, True),
        (AVAILABLE, PENDING, True),
        (AVAILABLE, SOLD, True),
        (PENDING, AVAILABLE, True),
        (PENDING, PENDING, True),
        (PENDING, SOLD, True),
        (SOLD, AVAILABLE, True),  # a return
        (SOLD, PENDING, False),
        (SOLD, SOLD, True),
    ],
)
def test_all_nine_transitions(before: PetStatus, after: PetStatus, allowed: bool) -> None:
    """Only sold -> pending is refused."""
    if allowed:
        check_transition(7, before, after)
    else:
        with pytest.raises(Conflict) as refused:
            check_transition(7, before, after)
        assert refused.value.message == "Animal 7 is sold: it can become available, not pending."


def test_a_pet_has_the_specifications_members() -> None:
    """id, name, categoryId, status: no more, no fewer; an int64 digit for digit."""
    pet = Pet(1, "Rex", INT64_MIN, SOLD)
    assert (
        msgspec.json.encode(shown_pet(pet))
        == b'{"id":1,"name":"Rex","categoryId":-9223372036854775808,"status":"sold"}'
    )
