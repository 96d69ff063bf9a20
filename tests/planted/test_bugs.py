"""The planted bugs fit the code of today; `make planted` plants them."""

from __future__ import annotations

import ast
from functools import cache

from tests.architecture.sources import functions
from tests.planted.bugs import ROOT, Bug, load


@cache
def in_file(file: str) -> set[str]:
    """The tests of a file, each with the class that it stands in."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    inner = {f"{each.name}::{test.name}" for each in classes for test in functions(each)}
    return inner | {test.name for test in functions(tree)}


def test_each_can_be_planted_and_its_test_exists() -> None:
    """A bug's text stands once in its file, so each change of that code carries the bug along."""
    assert [fault for name, bug in load().items() if (fault := fault_of(name, bug))] == []


def fault_of(name: str, bug: Bug) -> str:
    """What is wrong with a row; empty if nothing is."""
    if (fault := bug.fault(ROOT)) is not None:
        return f"{name}: {fault}"
    if bug.file.endswith(".py"):
        ast.parse(bug.planted_in(ROOT))  # an error of syntax fails any test
    file, _, test = bug.test.partition("::")
    exists = test.partition("[")[0] in in_file(file)
    return "" if exists else f"{name}: there is no {bug.test}; name the one of today"
