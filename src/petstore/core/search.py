"""Search in texts: how they are folded, and the grams by which an index finds them.

Each word of a query must be in the text, in any order. A word of three letters or more may be anywhere in it;
a shorter one begins a word, but where a script has no capitals, as Chinese or Arabic, it too may be anywhere.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from petstore.core.events import Bookmark
from petstore.core.values import read_id

# A change of the rules below is a new format: indexes are built again.
FORMAT = 2
# Letters that no decomposition takes apart, signs that keyboards and papers write in several ways, and what
# says only how the sign before it looks: whether it has colours, or which form a Japanese name has.
_FORMS = map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
_SAME = str.maketrans(
    dict(zip("øłđð\u0131\u2018\u2019\u02bc\u2010\u2013\u2014", "olddi'''---", strict=True))
    | {"þ": "th", "æ": "ae", "œ": "oe", **dict.fromkeys(_FORMS, "")}
)
_GRAM = 3
_WORDS_MAX = 16
# A query may be a whole form, a heading a whole file, and this much of it is folded: accents are sorted, in a
# time that grows with the square of their number, while nothing else of the process runs. No name is longer.
FOLDED_MAX_CHARACTERS = 1_000
_NUMBER = re.compile(r"\s*#?\s*([0-9]{1,19})\s*", re.ASCII)


class SearchKind(StrEnum):
    """What an index finds: the rows of a table."""

    PETS = "pets"
    ORDERS = "orders"
    ACCOUNTS = "accounts"


def read_kind(text: str | None) -> SearchKind | None:
    """The kind of this name; None for none, and for one that only a newer release knows."""
    return next((kind for kind in SearchKind if kind == text), None)


def fold(text: str) -> str:
    """A text without capitals, accents of any script, characters that nobody sees, such as the marks of a
    direction that come with what is pasted, and white space more than one space between words."""
    text = text[:FOLDED_MAX_CHARACTERS]
    if not text.isascii():
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        seen = [
            each for each in text if not (unicodedata.combining(each) or unicodedata.category(each) == "Cf")
        ]
        text = "".join(seen).translate(_SAME)
    return " ".join(text.casefold().split())


def id_in(text: str) -> int | None:
    """The identifier that somebody looks for: 340 of `340` and of `#340`; None if the text has none."""
    found = _NUMBER.fullmatch(text)
    return read_id(str(int(found[1]))) if found else None


def grams_of(text: str) -> set[str]:
    """The grams of a text: three letters in a row within a word, and the shorter ones with which words of a
    query are found."""
    grams = set()
    for word in fold(text).split():
        grams |= {word[at : at + _GRAM] for at in range(len(word) - _GRAM + 1)}
        for at, letter in enumerate(word):
            if at == 0 or not word[at - 1].isalnum() or unicodedata.category(letter) == "Lo":
                grams |= {word[at : at + length] for length in range(1, min(_GRAM, len(word) - at + 1))}
    return grams


def key_of(gram: str) -> int:
    """A gram in an index: a signed number of 32 bits. Two grams may have one key."""
    number = zlib.crc32(gram.encode())
    return number - (1 << 32) if number >> 31 else number


class Words:
    """The words that a text must have. Without any it is false, and matches every text."""

    def __init__(self, text: str) -> None:
        number = _NUMBER.fullmatch(text)
        text = number[1] if number else text
        words = list(dict.fromkeys(fold(text).split()))[:_WORDS_MAX]
        self._short = {word for word in words if len(word) < _GRAM}
        self._long = [word for word in words if len(word) >= _GRAM]
        grams = {word[at : at + _GRAM] for word in self._long for at in range(len(word) - _GRAM + 1)}
        self.keys = sorted({key_of(gram) for gram in self._short | grams})

    def __bool__(self) -> bool:
        return bool(self.keys)

    def match(self, text: str) -> bool:
        """Whether the text has all words."""
        folded = fold(text)
        return all(word in folded for word in self._long) and (
            not self._short or self._short <= grams_of(text)
        )


class IndexProgress(msgspec.Struct, frozen=True):
    """How far an index is: it has the journal up to `bookmark`. While it is built, it has the rows of the
    kinds before `building`, and of this one up to `after_id`."""

    bookmark: Bookmark
    building: SearchKind | None = None
    after_id: int = 0
    format: int = FORMAT

    @property
    def is_begin(self) -> bool:
        """Whether nothing is in it yet."""
        return self.building == next(iter(SearchKind)) and not self.after_id


IndexTexts = Mapping[SearchKind, Mapping[int, str | None]]


class SearchIndex(Protocol):
    """The grams of texts. It is made of the store's tables, and may be lost: it is made again then.

    Methods raise StoreUnavailable.
    """

    async def progress(self) -> IndexProgress | None:
        """The index's progress; None before it is begun, or if it is of an older format."""

    async def put(self, texts: IndexTexts, before: IndexProgress | None, after: IndexProgress) -> None:
        """Put texts in by their identifiers, None for one that is gone, unless another process did so since
        `before`. An `after` that is a begin empties the index."""

    async def find(
        self, kind: SearchKind, keys: Sequence[int], beyond: int, *, newest_first: bool, limit: int
    ) -> list[int]:
        """At most `limit` identifiers, in their order, after `beyond`: of all texts that have the grams, and
        of some that do not. A shorter list is the last."""
