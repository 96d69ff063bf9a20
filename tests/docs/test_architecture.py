"""ARCHITECTURE.md: its map is the tree, and the files that it names exist."""

from __future__ import annotations

import re

from tests.docs.documents import ROOT, fences, section, text_of

DOCUMENT = text_of(ROOT / "ARCHITECTURE.md")


def mapped() -> set[str]:
    """The paths in the map, from its indentation: two spaces a level."""
    (_, tree), *_ = fences(section(DOCUMENT, "The map"))
    found, parents = set(), [""]
    for line in tree.splitlines():
        entry = re.match(r"( *)([\w./-]+)", line)
        if entry is None or len(entry[1]) > 12 or entry[2] == "---":
            continue
        level = len(entry[1]) // 2
        path = parents[level] + entry[2]
        found.add(path)
        if path.endswith("/"):
            parents[level + 1 :] = [path]
    return found


def test_every_module_is_on_the_map_and_nothing_else_is() -> None:
    """The map has each module and migration under src/petstore, and no path that does not exist."""
    package = ROOT / "src" / "petstore"
    files = {path.relative_to(ROOT).as_posix() for path in (*package.rglob("*.py"), *package.rglob("*.sql"))}
    assert files - mapped() == set(), "add these to the map in ARCHITECTURE.md"
    assert {path for path in mapped() if not (ROOT / path).exists()} == set()


def test_files_that_are_named_exist() -> None:
    """Each path in backquotes leads to a file or a directory: from the root, or from the package."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.py)`", DOCUMENT))
    assert len(named) > 40
    places = (ROOT, ROOT / "src" / "petstore", ROOT / "src" / "petstore" / "api")
    assert {path for path in named if not any((place / path).exists() for place in places)} == set()


def test_the_packages_of_tests_are_named() -> None:
    """The map's line on tests has every directory under tests/."""
    line = re.search(r"^tests/ +(.*)$", DOCUMENT, re.M)
    assert line is not None
    folders = {path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert folders - set(re.findall(r"\w+", line[1])) == set()
