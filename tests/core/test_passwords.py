"""Passwords are taken by their length and how soon they are guessed, not by kinds of characters."""

from __future__ import annotations

import pytest

from petstore.core.errors import Invalid
from petstore.core.passwords import check_password, normalized
from tests.support.cases import every_case


@every_case(
    "password",
    [
        "mein hund bellt laut",
        "all lower case letters",
        "8" + "4715920361" * 2,
        "пароль из многих слов",
        "🐕🐈🐇🐹🐢🐍🦜🐠🦎🐓🐖🐑",  # twelve characters, 48 bytes
        "Anna wohnt in Augsburg",
        "x" * 3 + "no rule of repetition" + "x" * 104,
    ],
)
def test_long_ones_are_taken_whatever_their_characters(password: str) -> None:
    """No composition rules, spaces and every script, 12 to 128 code points (NIST SP 800-63B, 3.1.1.2)."""
    check_password(password, "anna")


@every_case(
    ("password", "fault"),
    [
        ("eleven char", "at least 12"),
        ("e\u0301" * 11 + "", "at least 12"),  # 22 code points that are 11 in NFC
        ("long " * 25 + "abcd", "at most 128"),
        ("password1234", "easy to guess"),
        ("PassWord1234", "easy to guess"),
        ("correcthorsebatterystaple", "easy to guess"),
        ("aaaaaaaaaaaa", "easy to guess"),
        ("abcabcabcabcab", "easy to guess"),
        ("123456789012", "easy to guess"),
        ("zyxwvutsrqponm", "easy to guess"),
        ("qwertyuiopasdf", "easy to guess"),
        ("anna.miller12", "'anna.miller' is too much"),
        ("Anna.Milleranna.miller!", "'anna.miller' is too much"),
        ("petstore2026!", "'petstore' is too much"),
        ("petstore" + "q7#kV2m", "'petstore' is too much"),
    ],
)
def test_weak_ones_are_refused_with_the_reason(password: str, fault: str) -> None:
    """Too short, too long, guessed at once, or little more than the person's or the service's name."""
    with pytest.raises(Invalid, match=fault) as refused:
        check_password(password, "anna.miller")
    assert refused.value.field == "password"


def test_a_password_of_any_length_costs_little() -> None:
    """The accents of one letter are sorted, in a time that grows with the square of their number."""
    assert len(normalized("\u0301\u0316" * 5_000)) < 1_000
    with pytest.raises(Invalid, match="at most 128"):
        check_password("\u0301\u0316" * 5_000, "anna")
    # NFC makes one of four; a piece of up to four would be a repetition.
    longest = "".join(f"{letter}\u0313\u0300\u0345" for letter in "ηωΩωη" * 26)[: 4 * 128]
    check_password(longest, "anna")
    with pytest.raises(Invalid, match="at most 128"):
        check_password(longest + "η", "anna")


def test_one_password_from_every_keyboard() -> None:
    """é is one character or two, as the keyboard has it; both are the same password (RFC 8265, NFC)."""
    assert normalized("cafe\u0301 au lait") == normalized("caf\u00e9 au lait")
