"""SECURITY.md names tests that exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.documents import ROOT, text_of

_NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+\.py(?:::\w+)+)`", text_of(ROOT / "SECURITY.md"))))


@pytest.mark.parametrize("named", _NAMED)
def test_each_test_that_it_names_exists(named: str) -> None:
    """A class or a function, in that file."""
    path, *names = named.split("::")
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    for name in names:
        (found,) = [node for node in body if getattr(node, "name", "") == name]
        body = getattr(found, "body", [])


def test_it_names_some() -> None:
    """The table is found."""
    assert len(_NAMED) > 20
