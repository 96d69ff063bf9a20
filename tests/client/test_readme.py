"""The examples of the client's README.md, as they stand, on a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server, running_server

README = Path(__file__).parents[2] / "clients" / "python" / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with an empty store."""
    with running_server(tmp_path) as server:
        yield server


@pytest.mark.e2e
def test_the_examples_run_one_after_another(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each goes on where the one before ended, as a reader would."""
    monkeypatch.setenv("PETSTORE_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("PETSTORE_KEY", server.key)
    assert len(EXAMPLES) >= 5
    names: dict[str, object] = {}
    for number, example in enumerate(EXAMPLES, 1):
        exec(compile(example, f"{README.name}, example {number}", "exec"), names)
    printed = capsys.readouterr().out
    for expected in ("1 available", "Rex", "Mia", "of 60 calls until", "There is no animal", "free"):
        assert expected in printed
