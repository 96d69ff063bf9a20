"""The descriptions of the contract, which are Markdown, as HTML."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markupsafe import Markup

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def block(text: str) -> Markup:
    """Paragraphs, lists and tables."""
    return Markup(_PARSER.render(text))


def inline(text: str) -> Markup:
    """The content of one paragraph."""
    return Markup(_PARSER.renderInline(" ".join(text.split())))
