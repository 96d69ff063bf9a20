"""A page as Markdown (CommonMark, with tables): for programs and people who read no HTML.

It is made of the page, so that both say the same. Links to other pages lead to their Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from posixpath import join, normpath

from petstore.site.tree import Node, content

_MARKS = {"strong": "**", "em": "*"}
_LINES = (*_MARKS, "a", "br", "code", "s", "span", "wbr")
# What would begin code, a link, a stress or HTML.
_SPECIAL = re.compile(r"([\\`*\[\]<])")


def markdown(html: str, path: str, pages: set[str]) -> str:
    """The page at `path`; `pages` are the paths that have Markdown, without slashes in front."""
    return "\n\n".join(_Writer(path, pages).blocks(content(html))) + "\n"


class _Writer:
    def __init__(self, path: str, pages: set[str]) -> None:
        self._folder = path.rpartition("/")[0]
        self._pages = pages

    def blocks(self, node: Node) -> Iterator[str]:
        """What stands in an element, each part without an empty line at its end."""
        for in_line, parts in groupby(node.parts, key=_is_in_line):
            if in_line:
                yield from filter(None, [self._line(Node("p", {}, list(parts)))])
            else:
                for part in parts:
                    assert isinstance(part, Node)
                    yield from self._block(part)

    def _block(self, node: Node) -> Iterator[str]:
        if re.fullmatch("h[1-6]", node.tag):
            yield f"{'#' * int(node.tag[1])} {self._line(node)}"
        elif node.tag in ("p", "summary"):
            yield from filter(None, [self._line(node)])
        elif node.tag == "pre":
            yield _fenced(node)
        elif node.tag in ("ul", "ol"):
            yield self._list(node)
        elif node.tag == "table":
            yield "\n".join(self._rows(node))
        elif node.tag == "blockquote":
            yield "\n".join(f"> {line}".rstrip() for line in "\n\n".join(self.blocks(node)).split("\n"))
        else:
            yield from self.blocks(node)

    def _list(self, node: Node) -> str:
        items = []
        for number, item in enumerate(_within(node, "li"), 1):
            mark = f"{number}. " if node.tag == "ol" else "* "
            text = "\n\n".join(self.blocks(item)).replace("\n", f"\n{' ' * len(mark)}")
            items.append(mark + re.sub(r"\n +\n", "\n\n", text))
        return ("\n\n" if any("\n" in item for item in items) else "\n").join(items)

    def _rows(self, node: Node) -> Iterator[str]:
        for number, row in enumerate(_within(node, "tr")):
            cells = [self._line(cell).replace("|", "\\|") for cell in _within(row, "th", "td")]
            yield f"| {' | '.join(cells)} |"
            if number == 0:
                yield "|---" * len(cells) + "|"

    def _line(self, node: Node) -> str:
        """The text of an element, with the marks of what stands in it."""
        pieces = list(self._pieces(node))
        return re.sub(r"\s+", " ", "".join(pieces)).strip()

    def _pieces(self, node: Node) -> Iterator[str]:
        before = ""
        for part in node.parts:
            if isinstance(part, str):
                yield _SPECIAL.sub(r"\\\1", part)
                before = ""
                continue
            if part.tag == before == "span":  # side by side, with a space that the style sheet makes
                yield "; "
            before = part.tag
            text = "".join(self._pieces(part))
            if part.tag == "code":
                yield _code(part.text())
            elif part.tag == "a" and "href" in part.attributes:
                yield f"[{text}]({self._target(part.attributes['href'])})"
            elif part.tag == "br":
                yield " "
            elif "mark" in part.classes:
                yield f"({text})"
            else:
                mark = _MARKS.get(part.tag, "")
                yield f"{mark}{text}{mark}"

    def _target(self, reference: str) -> str:
        """The link's target as in the page, since its Markdown stands beside it."""
        path, hash_sign, fragment = reference.partition("#")
        if path and normpath(join(self._folder, path)) in self._pages:
            path += ".md"
        return path + hash_sign + fragment


def _is_in_line(part: Node | str) -> bool:
    return isinstance(part, str) or part.tag in _LINES


def _within(node: Node, *tags: str) -> Iterator[Node]:
    """The elements of these names that are not in one another."""
    for part in node.parts:
        if isinstance(part, Node):
            yield from [part] if part.tag in tags else _within(part, *tags)


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _fenced(node: Node) -> str:
    language = next((part.attributes.get("class", "") for part in _within(node, "code")), "")
    return f"```{language.removeprefix('language-')}\n{node.text().rstrip()}\n```"
