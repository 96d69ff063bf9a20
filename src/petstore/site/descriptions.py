"""The descriptions of the contract, which are Markdown, as HTML."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

# Marked by a label beside the text.
_ADDITION = re.compile(r"^An addition[:.]\s+")
# Becomes a link of the reference, which is a page beside it.
_PAGE = re.compile(r"(?<!\S)/docs/(\w+)")
# A sentence ends before a capital or code; an abbreviation such as "e.g." is followed by neither.
_END = re.compile(r"(?<=[.)]) (?=[A-Z`])")

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def block(text: str) -> Markup:
    """Paragraphs, lists and tables."""
    return Markup(_PARSER.render(_without_label(text)))


def inline(text: str) -> Markup:
    """The content of one paragraph."""
    return Markup(_PARSER.renderInline(_without_label(" ".join(text.split()))))


def split(text: str) -> tuple[Markup, Markup]:
    """The first sentence, and the others."""
    first, _, others = _END.sub("\n", " ".join(text.split()), count=1).partition("\n")
    return inline(first), inline(others)


def _without_label(text: str) -> str:
    said = _PAGE.sub(r"[\g<0>](\1)", _ADDITION.sub("", text))
    return said[:1].upper() + said[1:]
