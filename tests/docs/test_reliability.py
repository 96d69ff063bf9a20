"""docs/reliability.md: its numbered guarantees are those that tests cite, and stand where they are held."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.docs.documents import ROOT, section, text_of

_ROW = re.compile(r"^\* \*\*(I\d+)\*\* \(([a-z0-9_, ]+)\): ", re.M)
_NUMBER = re.compile(r"\bI\d+\b")


def test_every_cited_guarantee_is_defined_and_every_defined_one_is_cited() -> None:
    """In brackets are the folders whose tests cite the number: correct the list, or the citation."""
    cited: dict[str, set[str]] = defaultdict(set)
    tests = ROOT / "tests"
    for path in tests.rglob("*.py"):
        for number in _NUMBER.findall(text_of(path)):
            cited[number].add(path.relative_to(tests).parts[0])
    text = section(text_of(ROOT / "docs" / "reliability.md"), "Guarantees")
    assert {number: set(folders.split(", ")) for number, folders in _ROW.findall(text)} == cited
