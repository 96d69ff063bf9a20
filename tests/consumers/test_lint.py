"""Linters that consumers run over every contract that they take in: not one error, not one warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.outside import node_program, run_tool
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("consumers-lint")]


class TestLint:
    """The document, read over the network as a consumer's check does; tests/api compares its two forms."""

    @pytest.mark.parametrize("document", ["openapi.json", "openapi.yaml"])
    def test_redocly_finds_nothing(self, server: Server, tmp_path: Path, document: str) -> None:
        """Redocly's recommended rules have no complaint of any severity."""
        address = f"{server.base_url}/{document}"
        options = ["--extends", "recommended", "--format", "json"]
        done = run_tool([node_program("redocly"), "lint", *options, address], tmp_path)
        found = json.loads(done.stdout or "{}")
        problems = [f"{each['ruleId']}: {each['message']}" for each in found.get("problems", [done.stderr])]
        assert problems == []
        assert done.returncode == 0

    def test_spectral_finds_nothing(self, server: Server, tmp_path: Path) -> None:
        """Spectral's rules for OpenAPI have no complaint, not even a hint."""
        (tmp_path / "rules.yaml").write_text('extends: ["spectral:oas"]\n')
        options = ["--ruleset", "rules.yaml", "--fail-severity", "hint", "--format", "json", "--quiet"]
        address = f"{server.base_url}/openapi.yaml"
        done = run_tool([node_program("spectral"), "lint", *options, address], tmp_path)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        problems = [f"{'.'.join(each['path'])}: {each['message']}" for each in json.loads(done.stdout)]
        assert problems == []
        assert done.returncode == 0
