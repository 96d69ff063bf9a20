"""Texts as searches compare them."""

from __future__ import annotations

import pytest

from petstore.core.search import Words, fold, grams_of, id_in, key_of
from tests.support.cases import every_case


@every_case(
    ("text", "folded"),
    [
        ("  Lady\u00a0 CAPTAIN ", "lady captain"),
        ("Ünï Ångström", "uni angstrom"),
        ("Straße STRASSE", "strasse strasse"),
        ("ØRESUND Łódź Æsop", "oresund lodz aesop"),
        ("İstanbul ISTANBUL \u0131", "istanbul istanbul i"),
        ("Ёлка ЁЛКА", "елка елка"),
        ("ΆΛΦΑ Σοφός", "αλφα σοφοσ"),
        ("ガ か\u3099", "カ か"),
        ("O\u2019Malley", "o'malley"),
        ("\ufb01n \uff26\uff49\uff4e", "fin fin"),
        ("\u202aBella\u200b\u00adtrix\u202c", "bellatrix"),
        (
            "\u0646\u0627\u0645\u0647\u200c\u0647\u0627 \u2764\ufe0f",
            "\u0646\u0627\u0645\u0647\u0647\u0627 \u2764",
        ),
        ("\u845b\U000e0100\u98fe", "\u845b\u98fe"),
    ],
)
def test_capitals_accents_and_spaces_make_no_difference(text: str, folded: str) -> None:
    """Capitals, accents, spaces and invisible characters make no difference, in any script."""
    assert fold(text) == folded
    assert fold(folded) == folded


@pytest.mark.parametrize(
    ("words", "text", "is_found"),
    [
        ("captain", "Lady Captain", True),
        ("PTAI", "Lady Captain", True),
        ("captain lady", "Lady Captain", True),
        ("captain lord", "Lady Captain", False),
        ("la", "Lady Captain", True),
        ("dy", "Lady Captain", False),
        ("10", "zoo-10", True),
        ("花", "小花猫", True),
        ("花猫", "小花猫", True),
        ("مو", "محمود", True),
        ("capain", "Lady Captain", False),
        ("abcxbcd", "abc xbcd", False),
    ],
)
def test_each_word_is_in_the_text(words: str, text: str, *, is_found: bool) -> None:
    """Short ones at the beginning of a word, where the script has capitals."""
    assert Words(words).match(text) is is_found


def test_the_grams_of_words_are_among_those_of_every_text_that_they_match() -> None:
    """A text that a search matches has all grams of the search's words, else an index would not find it."""
    texts = ["Lady Captain", "小花猫 二", "한국어 고양이", "x", "ab", "O\u2019Malley IV", "Ünï"]
    for text in texts:
        keys = {key_of(gram) for gram in grams_of(text)}
        whole = fold(text)
        parts = {whole[at:end] for at in range(len(whole)) for end in range(at + 1, len(whole) + 1)}
        for part in parts | {text}:
            if Words(part).match(text):
                assert set(Words(part).keys) <= keys, (part, text)


@every_case(
    ("text", "number"),
    [("340", 340), (" #0340 ", 340), ("# 7", 7), *dict.fromkeys(("34a", "", "-4", "0", "9" * 19)).items()],
)
def test_a_number_is_read_as_people_write_it(text: str, number: int | None) -> None:
    """It is read with a # or without."""
    assert id_in(text) == number


def test_a_text_of_any_length_costs_little() -> None:
    """The accents of one letter are sorted, in a time that grows with the square of their number."""
    name = "e\u0301" * 127
    assert len(fold("\u0301\u0316" * 5_000)) < 1_000
    assert len(fold("e\u0316" * 5_000)) == 500
    assert Words(name).match(name)


def test_no_words_match_nothing_in_particular() -> None:
    """White space is not a search."""
    assert not Words(" \u3000 ")
