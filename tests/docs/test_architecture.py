"""ARCHITECTURE.md: its grid and its packages are the tree, and the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.documents import ROOT, section, text_of

DOCUMENT = text_of(ROOT / "ARCHITECTURE.md")
PACKAGE = ROOT / "src" / "petstore"


def cells(row: str) -> list[str]:
    return [cell.strip(" `") for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def is_in(column: Path, word: str) -> bool:
    """Whether a column has a file for a word; the core has two folders besides."""
    return any((folder / f"{word}.py").exists() for folder in (column, column / "limits", column / "lists"))


def test_the_grid_is_the_tree() -> None:
    """Each word of the core that another column has is a row, and each cell tells whether its file exists."""
    head, _, *rows = re.findall(r"^\|.*\|$", section(DOCUMENT, "The grid"), re.M)
    columns = [PACKAGE / name for name in cells(head)[1:]]
    told = {cells(row)[0]: [cell == "x" for cell in cells(row)[1:]] for row in rows}
    words = {path.stem for path in (PACKAGE / "core").rglob("*.py")} - {"__init__"}
    shared = {word for word in words if any(is_in(column, word) for column in columns[1:])}
    assert told == {word: [is_in(column, word) for column in columns] for word in shared}


def test_every_package_is_named_and_nothing_else_is() -> None:
    """Modules are not listed: their docstrings say what they hold."""
    found = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")}
    packages = {name for name in found if name != "." and not name.endswith("migrations")}
    named = re.findall(r"^\* `([\w/]+)/`: ", section(DOCUMENT, "The grid"), re.M)
    assert sorted(named) == sorted(packages)


def test_files_that_are_named_exist() -> None:
    """Each path in backquotes leads to a file or a directory: from the root, or from the package."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.py)`", DOCUMENT)) - {"migrations/"}
    assert len(named) > 30
    assert {path for path in named if not any((place / path).exists() for place in (ROOT, PACKAGE))} == set()
