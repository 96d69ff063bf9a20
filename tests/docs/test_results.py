"""benchmarks/RESULTS.md holds the newest run of each choice of groups."""

from __future__ import annotations

import re

from benchmarks.report import replaced
from tests.docs.documents import ROOT, text_of


def test_a_run_replaces_the_section_of_its_groups() -> None:
    """Its own section, where that stands; another choice of groups is added at the end."""
    old = "# Results\n\n## Groups: all\n\nold\n\n## Versus\n\nkept\n"
    assert replaced(old, "Groups: all", "new") == old.replace("old", "new")
    assert replaced(old, "Versus", "new") == old.replace("kept", "new")
    assert replaced(old, "Groups: read", "new") == f"{old}\n## Groups: read\n\nnew\n"


def test_each_choice_of_groups_stands_once() -> None:
    """With its command and commit."""
    text = text_of(ROOT / "benchmarks" / "RESULTS.md")
    titles = re.findall(r"^## (.+)$", text, re.M)
    assert len(titles) == len(set(titles))
    assert len(re.findall(r"^`python -m benchmarks[ .][^`]*` at commit [0-9a-f]{7,}", text, re.M)) == len(
        titles
    )
