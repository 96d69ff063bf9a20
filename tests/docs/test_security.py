"""asvs.toml, to which SECURITY.md leads, names tests that exist."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, text_of

_TABLE = Path(__file__).with_name("asvs.toml")
_NAMED = sorted({row["test"] for row in tomllib.loads(text_of(_TABLE))["requirement"]})


@pytest.mark.parametrize("named", _NAMED)
def test_each_test_that_it_names_exists(named: str) -> None:
    """A class or a function, in that file."""
    path, *names = named.split("::")
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    for name in names:
        (found,) = [node for node in body if getattr(node, "name", "") == name]
        body = getattr(found, "body", [])


def test_the_page_leads_to_it() -> None:
    """SECURITY.md names the table, which has the requirements."""
    assert _TABLE.relative_to(ROOT).as_posix() in text_of(ROOT / "SECURITY.md")
    assert len(_NAMED) > 20
