"""The table holds: each sentence has its test, each test a sentence, each gap its documented answer."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.spec.table import GAPS, SENTENCES

ROOT = Path(__file__).parents[2]
GAPS_PAGE = ROOT / "docs" / "specification-gaps.md"
MAPPED = [row.test for row in (*SENTENCES, *GAPS)]


def existing() -> set[str]:
    """`module::Class::test` of every test in this folder but those of the table itself."""
    found = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        if file.stem == "test_table":
            continue
        module = importlib.import_module(f"tests.spec.{file.stem}")
        for class_name, cls in vars(module).items():
            if class_name.startswith("Test"):
                found |= {
                    f"{file.stem}::{class_name}::{name}" for name in vars(cls) if name.startswith("test_")
                }
    return found


class TestTable:
    """Sentences and tests are the same set."""

    @pytest.mark.parametrize("row", [*SENTENCES, *GAPS], ids=lambda row: row.words[:60])
    def test_each_sentence_has_a_test_that_exists(self, row: object) -> None:
        """By its full name."""
        assert row.test in existing()  # type: ignore[attr-defined]

    def test_each_test_has_a_sentence(self) -> None:
        """Nothing here tests what the specification does not say."""
        assert existing() == set(MAPPED)

    def test_no_sentence_and_no_test_stands_twice(self) -> None:
        """One sentence, one test."""
        sentences = [(row.section, row.words) for row in (*SENTENCES, *GAPS)]
        assert len(sentences) == len(set(sentences))
        assert len(MAPPED) == len(set(MAPPED))

    def test_each_gap_is_documented_and_nothing_else_is_called_not_shown(self) -> None:
        """The page's first table has exactly one row for each gap, with an answer."""
        text = GAPS_PAGE.read_text(encoding="utf-8")
        table = text.partition('## What the specification calls "not shown"')[2].partition("\n## ")[0]
        rows = [
            tuple(cell.strip() for cell in line.strip("|").split(" | "))
            for line in table.splitlines()
            if line[:1] == "|"
        ][2:]
        assert [row[:2] for row in rows] == [gap.documented for gap in GAPS]
        for row in rows:
            assert len(row) == 3
            assert row[2]

    def test_what_is_open_says_so(self) -> None:
        """Every gap is one that the specification itself calls not shown."""
        assert all(re.search(r"not shown", gap.words) for gap in GAPS)
        assert not any("not shown" in sentence.words for sentence in SENTENCES)
