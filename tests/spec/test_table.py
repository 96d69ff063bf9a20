"""The table holds: each sentence has tests that exist, each gap its documented answer."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TypeGuard

from tests.spec.table import ROWS

ROOT = Path(__file__).parents[2]


def names(file: str) -> set[str]:
    """`file::Class::test` or `file::test` of every test in a file below tests/."""
    path = ROOT / "tests" / file
    if not path.is_file():
        return set()
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{file}::{node.name}::{part.name}" for part in node.body if is_test(part)}
        elif is_test(node):
            found.add(f"{file}::{node.name}")
    return found


def is_test(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Whether pytest collects a statement as a test."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


class TestTable:
    """Sentences have tests, and gaps have answers."""

    def test_each_sentence_has_tests_that_exist(self) -> None:
        """A test that was renamed or removed is named here, with the sentence that would lose it."""
        existing = {
            file: names(file) for row in ROWS for file in (test.partition("::")[0] for test in row.tests)
        }
        lost = [
            (row.words, test)
            for row in ROWS
            for test in row.tests
            if test not in existing[test.partition("::")[0]]
        ]
        assert not lost, "Name the tests that hold these sentences now."
        assert all(row.tests for row in ROWS)

    def test_no_sentence_stands_twice(self) -> None:
        """In its section."""
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
