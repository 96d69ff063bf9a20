"""verification/benchmarks/RESULTS.md holds the newest run of each choice of groups."""

from __future__ import annotations

import re

from tests.docs.documents import ROOT, text_of


def test_each_choice_of_groups_stands_once() -> None:
    """With its command and commit."""
    text = text_of(ROOT / "verification" / "benchmarks" / "RESULTS.md")
    titles = re.findall(r"^## (.+)$", text, re.M)
    assert len(titles) == len(set(titles))
    runs = re.findall(r"^`python -m verification\.benchmarks[ .][^`]*` at commit [0-9a-f]{7,}", text, re.M)
    assert len(runs) == len(titles)
