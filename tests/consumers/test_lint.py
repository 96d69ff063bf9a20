"""A linter that consumers run over every contract that they take in: not one error, not one warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.outside import node_program, run_tool
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# What other linters ask for by default.
_MORE = (
    "info-contact",
    "no-invalid-parameter-examples",
    "operation-description",
    "operation-singular-tag",
    "operation-tag-defined",
)


def test_redocly_finds_nothing(server: Server, tmp_path: Path) -> None:
    """The document as read over the network has no fault for redocly; tests/api compares its two forms."""
    rules = {"extends": ["recommended"], "rules": dict.fromkeys(_MORE, "error")}
    (tmp_path / "redocly.yaml").write_text(json.dumps(rules))
    options = ["--config", "redocly.yaml", "--format", "json", f"{server.base_url}/openapi.yaml"]
    done = run_tool([node_program("redocly"), "lint", *options], tmp_path)
    found = json.loads(done.stdout or "{}")
    problems = [f"{each['ruleId']}: {each['message']}" for each in found.get("problems", [done.stderr])]
    assert problems == []
    assert done.returncode == 0
