"""The page of errors, with an index by HTTP status, made of the table of errors."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import msgspec

from petstore.core.errors import BY_CODE
from petstore.site.documents import TABLE, TABLE_END, Heading

_BEFORE = "\n## "
_TITLE = "By status"


def with_index(text: str) -> str:
    """The document with an index before its first heading, in which each status is an anchor."""
    return text.replace(_BEFORE, f"{_BEFORE}{_TITLE}\n\n{''.join(_table())}\n{_BEFORE}", 1)


def contents(headings: list[Heading]) -> list[Heading]:
    """The headings with the status in front of each code."""
    return [
        msgspec.structs.replace(each, text=f"{BY_CODE[each.text].status} {each.text}")
        if each.text in BY_CODE
        else each
        for each in headings
    ]


def _table() -> Iterator[str]:
    yield f"{TABLE}<thead><tr><th>Status</th><th>Codes</th></tr></thead>\n<tbody>\n"
    for status in sorted({error.status for error in BY_CODE.values()}):
        codes = ", ".join(
            f'<a href="#{code}"><code>{code}</code></a>'
            for code, error in BY_CODE.items()
            if error.status == status
        )
        phrase = HTTPStatus(status).phrase
        yield f'<tr id="{status}"><td>{status} {phrase}</td><td>{codes}</td></tr>\n'
    yield f"</tbody>\n{TABLE_END}"
