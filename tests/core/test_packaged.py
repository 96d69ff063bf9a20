"""The files of the program that a process looks at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore.core import packaged


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program of two modules in the place of this one, not looked at yet."""
    folder = tmp_path / "petstore"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "old.py").touch()
    monkeypatch.setattr(packaged, "_ROOT", folder)
    packaged._first_paths.cache_clear()
    yield folder
    packaged._first_paths.cache_clear()


def test_a_module_that_comes_later_is_seen_and_not_loaded(program: Path) -> None:
    """An upgrade beside a service: its second load, after the first fork, takes up no file of the new one."""
    before = packaged.modules(), packaged.fingerprint()
    (program / "new.py").touch()
    assert packaged.modules() == before[0] == ["petstore", "petstore.old"]
    assert {path for path, *_ in packaged.fingerprint() - before[1]} == {"petstore/new.py"}
