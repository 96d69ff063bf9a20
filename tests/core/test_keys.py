"""The key's format, checksum, digest and display; account names and labels; a key's state."""

from __future__ import annotations

import hashlib
import re
import string
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petstore.core.accounts import check_account_name
from petstore.core.digests import digest
from petstore.core.errors import Conflict, Invalid
from petstore.core.keys import (
    KEY_PATTERN,
    LABEL_MAX_CHARACTERS,
    Access,
    ApiKey,
    check_label,
    check_not_replaced,
    display,
    is_wellformed,
    mint,
    rotated_until,
)
from tests.support.cases import every_case

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# Written by hand once, so that a change of the format shows: 32 characters, then CRC-32 in base 62.
EXAMPLE = "pets_live_" + "0123456789ABCDEFGHIJKLMNOPQRSTUV"


def checksum(text: str) -> str:
    """Six base-62 digits of CRC-32, by another way than the program's."""
    number, digits = zlib.crc32(text.encode()), ""
    while number:
        digits = BASE62[number % 62] + digits
        number //= 62
    return digits.rjust(6, "0")


def test_each_level_includes_the_ones_before() -> None:
    """read < write < manage."""
    included = [(have, need) for have in Access for need in Access if have.includes(need)]
    assert included == [
        ("read", "read"),
        ("write", "read"), ("write", "write"),
        ("manage", "read"), ("manage", "write"), ("manage", "manage"),
    ]  # fmt: skip


class TestFormat:
    """`pets_live_` or `pets_test_`, 32 random characters, 6 of checksum."""

    @pytest.mark.parametrize("environment", ["live", "test"])
    def test_a_minted_key_has_the_published_form(self, environment: str) -> None:
        """48 characters that the pattern for secret scanners finds, in any text."""
        key = mint(environment)
        assert re.fullmatch(rf"pets_{environment}_[0-9A-Za-z]{{38}}", key)
        found = KEY_PATTERN.search(f"x = '{key}';")
        assert found is not None
        assert found[0] == key
        assert is_wellformed(key)

    def test_the_checksum_covers_everything_before_it(self) -> None:
        """CRC-32 over prefix and random part, most significant digit first, padded with zeros."""
        assert is_wellformed(EXAMPLE + checksum(EXAMPLE))
        key = mint("live")
        assert key[-6:] == checksum(key[:-6])

    def test_no_two_keys_are_alike(self) -> None:
        """A thousand, all different, all characters in use."""
        keys = {mint("test") for _ in range(1_000)}
        assert len(keys) == 1_000
        assert {character for key in keys for character in key[10:42]} == set(BASE62)

    @given(place=st.integers(10, 47), other=st.sampled_from(BASE62))
    @settings(max_examples=75, deadline=None)
    def test_one_wrong_character_is_found(self, place: int, other: str) -> None:
        """A typing error never reaches the database."""
        key = EXAMPLE + checksum(EXAMPLE)
        typed = key[:place] + other + key[place + 1 :]
        assert is_wellformed(typed) is (typed == key)

    @every_case(
        "text",
        [
            "",
            "pets_live_",
            EXAMPLE + checksum(EXAMPLE) + "0",
            (EXAMPLE + checksum(EXAMPLE))[:-1],
            EXAMPLE.replace("live", "prod") + checksum(EXAMPLE.replace("live", "prod")),
            (EXAMPLE + checksum(EXAMPLE)).upper(),
            EXAMPLE + checksum(EXAMPLE) + "\n",
            " " + EXAMPLE + checksum(EXAMPLE),
            "pets_test_" + (EXAMPLE + checksum(EXAMPLE))[10:],
            (EXAMPLE + checksum(EXAMPLE)).replace("0123", "01\uff123"),
        ],
    )
    def test_other_texts_are_not_keys(self, text: str) -> None:
        """Too short, too long, another prefix or case, white space, digits that are not ASCII."""
        assert not is_wellformed(text)


class TestDigestAndDisplay:
    """What is kept of a key."""

    def test_the_digest_is_sha_256(self) -> None:
        """Any bytes have one, since the work must not say how close a guess was."""
        for token in (b"", b"abc", b"\xff\x00", mint("live").encode()):
            assert digest(token) == hashlib.sha256(token).digest()

    @pytest.mark.parametrize("environment", ["live", "test"])
    def test_the_display_shows_the_prefix_and_the_last_four_characters(self, environment: str) -> None:
        """Enough to recognise a key, useless to present."""
        key = mint(environment)
        assert display(key) == f"pets_{environment}_…{key[-4:]}"


@every_case(
    ("expires", "revoked", "now", "state"),
    [
        (None, None, 0, "active"),
        (1_000, None, 999, "active"),
        (1_000, None, 1_000, "expired"),  # at its end exactly
        (None, 500, 500, "revoked"),
        (None, 500, 499, "revoked"),  # the clock was set back: a revocation stays one
        (400, 500, 600, "revoked"),  # the stronger word of the two
    ],
)
def test_a_keys_state(expires: int | None, revoked: int | None, now: int, state: str) -> None:
    """Expiry is a moment that comes, revocation is for ever."""
    key = ApiKey(1, 1, "", "pets_live_…abcd", 0, expires, revoked)
    assert key.state(now) == state


@pytest.mark.parametrize(("expires", "revoked", "state"), [(1_000, None, "expired"), (None, 500, "revoked")])
def test_a_key_that_has_ended_is_not_rotated(expires: int | None, revoked: int | None, state: str) -> None:
    """The refusal names the state: of the key itself, or of its successor."""
    key = ApiKey(2, 1, "", "pets_live_…abcd", 0, expires, revoked)
    with pytest.raises(Conflict, match=f"^Key 2 is {state}; issue a new key instead.$"):
        rotated_until(key, 1_000, 0)
    replaced = f"^Key 1 was replaced by key 2 on 1970-01-01, which is {state}; issue a new key.$"
    with pytest.raises(Conflict, match=replaced):
        check_not_replaced(1, key, 0, 1_000)


class TestNames:
    """Account names are safe in a shell, a path and a log, and never look like an id."""

    @every_case("name", ["a", "A.b-c_1", "1a", "a1", "-", ".", "x" * 64, "1.0"])
    def test_a_good_name(self, name: str) -> None:
        """1 to 64 letters, digits, dots, dashes and underscores."""
        check_account_name(name)

    @every_case(
        "name", ["", "1", "007", "x" * 65, "a b", "a\n", "ä", "a/b", "\uff11", "a'b", "\x00", "é", "1\n"]
    )
    def test_a_bad_name_is_refused_with_what_to_write(self, name: str) -> None:
        """Empty, digits alone, too long, other characters, a trailing line end."""
        with pytest.raises(Invalid, match=r"use 1 to 64 letters \(A to Z\)") as refused:
            check_account_name(name)
        assert refused.value.field == "name"

    @every_case("label", ["", "x", "CI für die Kasse", "x" * LABEL_MAX_CHARACTERS])
    def test_a_good_label(self, label: str) -> None:
        """Printable, at most 100 characters, none at all."""
        check_label(label)

    @every_case("label", ["x" * (LABEL_MAX_CHARACTERS + 1), "a\nb", "\x1b[31m", "\u202e"])
    def test_a_bad_label_is_refused(self, label: str) -> None:
        """Too long, or able to play tricks on a terminal."""
        with pytest.raises(Invalid, match="100 printable") as refused:
            check_label(label)
        assert refused.value.field == "label"
