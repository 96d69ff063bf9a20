"""A page cut into what the search finds: its headings, and all else that has an address of its own."""

from __future__ import annotations

import msgspec

from petstore.site.tree import Node, content

_HEADINGS = ("h1", "h2", "h3", "h4")
# A label after the title, such as "addition".
_MARK = "mark"
# Between the texts of two of them is a space.
_WITHIN_A_LINE = ("a", "code", "em", "s", "span", "strong", "wbr")


class Section(msgspec.Struct):
    """`path` is the page's, `anchor` is empty for what stands below its title."""

    path: str
    page: str
    anchor: str
    title: str
    text: str


def sections(html: str, path: str, page: str) -> list[Section]:
    """The sections of a page that is called `page`, in their order; `text` has single spaces."""
    found = [Section(path, page, "", "", "")]
    _collect(content(html), found, found[0])
    for each in found:
        each.title = " ".join(each.title.split()) or each.anchor.rpartition("-")[2]
        each.text = " ".join(each.text.split())
    return found


def _collect(node: Node, found: list[Section], into: Section) -> None:
    """A heading with an anchor begins a section for what follows it; another element has one of its own."""
    for part in node.parts:
        if isinstance(part, str):
            into.text += part
            continue
        own = into
        if anchor := part.attributes.get("id"):
            own = Section(into.path, into.page, anchor, "", "")
            found.append(own)
        if part.tag in _HEADINGS and not own.title:
            own.title, into = _title(part), own
        elif not _is_sample(part, node):  # its operation has its words
            _collect(part, found, own)
        if part.tag not in _WITHIN_A_LINE or (node.tag, part.tag) == ("p", "span"):
            own.text += " "


def _is_sample(part: Node, within: Node) -> bool:
    """Whether a part is the sample of an operation in the reference."""
    return "code" in within.classes and "tabs" in part.classes


def _title(heading: Node) -> str:
    return "".join(
        part if isinstance(part, str) else part.text()
        for part in heading.parts
        if isinstance(part, str) or _MARK not in part.classes
    )
