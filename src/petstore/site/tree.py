"""The content of a page as a tree, of which Markdown and the index of the search are made."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec

_EMPTY = ("br", "hr", "img", "input", "link", "meta")
# Nine of ten elements of the reference: forms, and the colours of code.
_FORM = re.compile(r"<form.*?</form>", re.S)
_CODE = re.compile(r"<pre.*?</pre>", re.S)
_COLOUR = re.compile(r"</?span[^>]*>")
# Not content: what a script shows, ways to other pages, what is for the mouse or for a reader aloud alone.
_LEFT_OUT_TAGS = ("nav", "input", "label", "legend", "button", "svg")
_LEFT_OUT_CLASSES = {"anchor", "hidden"}


class Node(msgspec.Struct):
    """An element. Texts are as in the page, with references to characters resolved."""

    tag: str
    attributes: dict[str, str]
    parts: list[Node | str] = []

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def is_left_out(self) -> bool:
        return self.tag in _LEFT_OUT_TAGS or not _LEFT_OUT_CLASSES.isdisjoint(self.classes)

    def text(self) -> str:
        """All texts within, joined."""
        return "".join(part if isinstance(part, str) else part.text() for part in self.parts)


def content(page: str) -> Node:
    """The element `main` of a page of ours, in which every element is closed."""
    parser = _Parser()
    parser.feed(_CODE.sub(lambda code: _COLOUR.sub("", code[0]), _FORM.sub("", page)))
    return parser.main


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.main = Node("main", {})
        self._open: list[Node] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "main":
            self._open = [self.main]
        elif self._open:
            node = Node(tag, {name: value or "" for name, value in attrs})
            if tag in _EMPTY:
                self._open[-1].parts += [] if node.is_left_out else [node]
            else:
                self._open[-1].parts.append(node)
                self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if self._open and tag not in _EMPTY and self._open.pop().is_left_out:
            self._open[-1].parts.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].parts.append(data)
