"""The Markdown documents of the project, and what stands in them: headings, links, code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(```+)(\w*)\n(.*?)^\1$", re.M | re.S)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)


def documents() -> list[Path]:
    """Every Markdown file that belongs to the project and was written for it."""
    verification = (ROOT / "verification").glob("*/*.md")
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *verification])


def name_of(path: Path) -> str:
    """A document's path as people write it."""
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    return _FENCE.sub("", text)


def fences(text: str) -> list[tuple[str, str]]:
    """Fenced blocks: language and content."""
    return [(match[2], match[3]) for match in _FENCE.finditer(text)]


def links(text: str) -> list[str]:
    """The targets of all links in the prose, code in backquotes left out."""
    return _LINK.findall(re.sub(r"`[^`]*`", "", prose(text)))


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as the usual renderers make them."""
    found = set()
    for heading in _HEADING.findall(prose(text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def section(text: str, title: str) -> str:
    """What stands under a heading of the second level."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert match is not None, f"there is no section {title!r}"
    return match[1]
