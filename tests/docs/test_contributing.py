"""CONTRIBUTING.md: its numbers, marks and folders are those of the project (its imports: test_imports.py)."""

from __future__ import annotations

import re
import tomllib

from tests.architecture.test_rules import FILE_LINES, FUNCTION_LINES
from tests.docs.documents import ROOT, section, text_of

DOCUMENT = text_of(ROOT / "CONTRIBUTING.md")
PROJECT = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]


def test_the_sizes_are_those_that_tests_keep() -> None:
    """Lines of a file and of a function, and the branches that have to be covered."""
    text = " ".join(DOCUMENT.split())
    assert f"at most {FILE_LINES} lines and a function at most {FUNCTION_LINES};" in text
    assert f"At least {PROJECT['coverage']['report']['fail_under']} % of all branches" in text


def test_every_folder_of_tests_is_named() -> None:
    """And no other; `contract` stands in two of them."""
    rules = section(DOCUMENT, "The rules for tests")
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert set(re.findall(r"`(\w+)`", rules.partition("\n* Name")[0])) - {"contract"} == folders


def test_every_mark_is_named() -> None:
    """A test without its mark runs where it can't, or slows down what should be quick."""
    marks = {mark.partition(":")[0] for mark in PROJECT["pytest"]["markers"]}
    assert marks <= set(re.findall(r"`(\w+)`", section(DOCUMENT, "The rules for tests")))
