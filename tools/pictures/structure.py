"""What a page says and offers: its headings, labels, columns, buttons and links, without the data.

Two pages of one structure look alike to a reader of the documents; times, names and numbers may differ.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Their text is part of the page, whatever is in the store.
_SAID = {
    "h1": "title", "h2": "heading", "h3": "heading", "label": "field", "legend": "fields", "th": "column",
    "button": "button", "a": "link", "summary": "fold", "dt": "term", "option": "choice",
}  # fmt: skip
# What is in a table's body, or in one of these, is data.
_DATA = ("tbody", "time", "svg", "dd", "code")
# The menu of a phone says the same again.
_SECOND_MENU = ("aria-label", "All pages")
_NUMBER = re.compile(r"\d[\d,]*")
_VOID = ("input", "link", "meta", "br", "hr", "img", "wbr")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open: list[str] = []  # the elements around, outermost first
        self._said: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        self._open.append("svg" if _SECOND_MENU in attrs else tag)
        if tag in _SAID and not self._is_data():
            self._said.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        tag = "svg" if tag == "nav" and "svg" in self._open else tag
        if tag not in self._open:
            return
        while self._open.pop() != tag:
            pass
        if self._said and self._said[-1][0] == tag and not self._is_data():
            _, words = self._said.pop()
            text = _NUMBER.sub("N", " ".join("".join(words).split()))
            if text:
                self.lines.append(f"{_SAID[tag]}: {text}")

    def handle_data(self, data: str) -> None:
        if self._said and not self._is_data():
            self._said[-1][1].append(data)

    def _is_data(self) -> bool:
        return any(tag in _DATA for tag in self._open)


def structure(page: str) -> list[str]:
    """The lines of a page's HTML, such as `button: Save`."""
    reader = _Reader()
    reader.feed(page)
    return reader.lines
