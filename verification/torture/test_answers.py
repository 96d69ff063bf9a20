"""The recorder of answers runs on this checkout: adapter.py knows the program's names of today."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tools.answers.__main__ import patched_source
from tools.answers.http import Recording, provision
from tools.answers.requests import Requests


def test_the_source_can_be_patched_for_valkey(tmp_path: Path) -> None:
    """Each pattern of PATCHES still finds its line."""
    patched_source(tmp_path)


@pytest.mark.slow
def test_answers_are_recorded(tmp_path: Path) -> None:
    """One line for each request, of many kinds, and the metrics after them."""
    environment = {"PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/petstore.db", "PETSTORE_ACCESS_LOG": "off"}
    keys = provision(environment, tmp_path)
    asyncio.run(Recording(environment, None, tmp_path, "sqlite").record(Requests(1, keys), 400))
    lines = (tmp_path / "answers-sqlite.txt").read_text().splitlines()
    assert len(lines) == 400
    assert {json.loads(line)[2] for line in lines} >= {200, 201, 400, 401, 404, 405, 415}
    assert "petstore_requests_total{" in (tmp_path / "metrics-sqlite.txt").read_text()
