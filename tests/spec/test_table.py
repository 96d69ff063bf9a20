"""The table holds: each sentence has tests that exist, each gap its documented answer."""

from __future__ import annotations

import re

from tests.planted.bugs import ROOT
from tests.planted.test_bugs import in_file
from tests.spec.table import ROWS


class TestTable:
    """Sentences have tests, and gaps have answers."""

    def test_each_sentence_has_tests_that_exist(self) -> None:
        """A test that was renamed or removed is named here, with the sentence that would lose it."""
        named = [(row.words, *test.split("::", 1)) for row in ROWS for test in row.tests]
        lost = [each for each in named if each[2] not in in_file(f"tests/{each[1]}")]
        assert not lost, "Name the tests that hold these sentences now."
        assert all(row.tests for row in ROWS)

    def test_no_sentence_stands_twice_in_its_section(self) -> None:
        """One row of the table stands for each sentence."""
        sentences = [row[:2] for row in ROWS]
        assert len(sentences) == len(set(sentences))

    def test_each_gap_is_documented_and_nothing_else_is_called_not_shown(self) -> None:
        """Exactly what the specification calls not shown is a gap, and the page has an answer to each."""
        assert all((row.gap is not None) == ("not shown" in row.words) for row in ROWS)
        text = (ROOT / "docs" / "specification-gaps.md").read_text(encoding="utf-8")
        gaps = text.partition('## What the specification calls "not shown"')[2].partition("\n## ")[0]
        rows = re.findall(r"^\* \*\*(.+?): (.+?)\*\*: \S", gaps, re.M)
        assert rows == [row.gap for row in ROWS if row.gap]
        assert len(rows) == gaps.count("\n* ")
