"""An index of sections in memory: which of them have the words of a query, the best first.

A word is found in capitals and small letters, in singular and plural; the last one also as the beginning of a
longer word. Names such as `key_banned`, `X-RateLimit-Limit` and `pet.updated` are words, and
so are their parts. Nothing in a query has another meaning than the characters themselves.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import log

import msgspec
from markupsafe import Markup, escape

from petstore.site.sections import Section

_RESULTS = 20
_IN_TITLE = 10.0
_AS_BEGINNING = 0.3
_BEGINNINGS = 50
_BEFORE, _SNIPPET = 60, 220

_WORD = re.compile(r"\w+(?:[-./]\w+)*")
_PARTS = re.compile(r"[-./_]")


class SearchResult(msgspec.Struct, frozen=True):
    """A section as a result: `page` is its page's name, `address` leads to it from the site's root."""

    address: str
    page: str
    title: Markup
    snippet: Markup


class Index:
    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = sections
        self._weights: defaultdict[str, dict[int, float]] = defaultdict(dict)
        # The place in the text of a section at which a word stands first.
        self._offsets: dict[tuple[str, int], int] = {}
        for number, section in enumerate(sections):
            words = list(_words(section.text))
            for word, count in Counter(word for word, _ in words).items():
                self._weights[word][number] = 1 + log(count)
            for word, offset in words:
                self._offsets.setdefault((word, number), offset)
            title = [word for word, _ in _words(section.title)]
            for word in {*title, *(word for word, _ in _words(section.anchor))}:
                in_text = self._weights[word].get(number, 0)
                self._weights[word][number] = in_text + _IN_TITLE * (1 + 1 / len(title))
        self._known = sorted(self._weights)

    def find(self, query: str) -> list[SearchResult]:
        """The sections, at most 20, that have all words of a query; where none has, those that have some."""
        asked = self._asked(query)
        scores: defaultdict[int, list[float]] = defaultdict(list)
        wanted: set[str] = set()
        for word in asked:
            having, words = self._having(word, may_begin=word == asked[-1])
            wanted |= words
            for number, weight in having.items():
                scores[number].append(weight * log(1 + len(self._sections) / len(having)))
        whole = [number for number, weights in scores.items() if len(weights) == len(asked)]
        best = sorted(whole or scores, key=lambda number: -sum(scores[number]) * len(scores[number]))
        return [self._found(number, wanted) for number in best[:_RESULTS]]

    def _asked(self, query: str) -> list[str]:
        """The words of a query, each once; of a name that stands nowhere, its parts."""
        asked: list[str] = []
        for found in _WORD.findall(query):
            whole, *parts = _spellings(found)
            asked += parts if parts and not self._beginning_with(whole) else [whole]
        return list(dict.fromkeys(asked))

    def _having(self, word: str, *, may_begin: bool) -> tuple[dict[int, float], set[str]]:
        """The weight of a word in each section that has it, and the words that were taken for it."""
        having, words = dict(self._weights.get(word, ())), {word}
        for longer in self._beginning_with(word) if may_begin and len(word) > 1 else ():
            words.add(longer)
            for number, weight in self._weights[longer].items():
                having[number] = max(having.get(number, 0), weight * _AS_BEGINNING)
        return having, words

    def _beginning_with(self, word: str) -> list[str]:
        first = bisect_left(self._known, word)
        return list(takewhile(lambda each: each.startswith(word), self._known[first : first + _BEGINNINGS]))

    def _found(self, number: int, wanted: set[str]) -> SearchResult:
        section = self._sections[number]
        address = f"{section.path}#{section.anchor}" if section.anchor else section.path
        offsets = [self._offsets[word, number] for word in wanted if (word, number) in self._offsets]
        snippet = _snippet(section.text, min(offsets, default=0), wanted)
        return SearchResult(address, section.page, _marked(section.title, wanted), snippet)


def _spellings(found: str) -> Iterator[str]:
    """A word as it is compared, then the parts of a name."""
    yield _folded(found)
    parts = _PARTS.split(found)
    if len(parts) > 1:
        yield from (_folded(part) for part in parts if part)


def _folded(word: str) -> str:
    word = word.casefold()
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Each word in each spelling, and where it begins."""
    for found in _WORD.finditer(text):
        for word in _spellings(found[0]):
            yield word, found.start()


def _snippet(text: str, offset: int, wanted: set[str]) -> Markup:
    """What stands around an offset of a text, cut between words."""
    start = text.rfind(" ", 0, max(0, offset - _BEFORE)) + 1
    end = len(text) if len(text) <= start + _SNIPPET else text.rfind(" ", start, start + _SNIPPET)
    shown = _marked(text[start : end if end > start else start + _SNIPPET], wanted)
    return escape("… " if start else "") + shown + (" …" if end < len(text) else "")


def _marked(text: str, wanted: set[str]) -> Markup:
    return escape("").join(_pieces(text, wanted))


def _pieces(text: str, wanted: set[str]) -> Iterator[Markup]:
    at = 0
    for found in _WORD.finditer(text):
        if not wanted.isdisjoint(_spellings(found[0])):
            yield escape(text[at : found.start()])
            yield Markup("<mark>{}</mark>").format(found[0])
            at = found.end()
    yield escape(text[at:])
