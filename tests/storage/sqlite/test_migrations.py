"""The schema's steps: forward only, each whole or not at all, by one of several processes at once."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from petstore.core.errors import StoreUnavailable
from petstore.storage import migrations
from petstore.storage.migrations import Migration, Schema
from petstore.storage.sqlite.schema import MIGRATIONS_PACKAGE, migrate, read
from tests.support.schemas import Know, knowing

NEWEST = migrations.load(MIGRATIONS_PACKAGE)[-1].number


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "schema.db")


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Know:
    """Let the program know further steps, given as SQL, after its own."""
    return knowing(monkeypatch)


def schema(path: str) -> tuple[int, list[str]]:
    """Version and tables of a file."""
    connection = apsw.Connection(path)
    try:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        return read(connection).version, [row[0] for row in tables]
    finally:
        connection.close()


class TestSteps:
    """Numbered files, in order."""

    def test_the_numbers_have_no_gap(self) -> None:
        """1, 2, 3 … and each names its file."""
        steps = migrations.load(MIGRATIONS_PACKAGE)
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))
        assert all(re.fullmatch(r"[a-z0-9_]+", step.name) for step in steps)

    def test_what_is_pending(self) -> None:
        """Everything above the version."""
        steps = tuple(Migration(n, "x", "", 1) for n in (1, 2, 3))
        assert [step.number for step in Schema(1, 1, steps).pending()] == [2, 3]
        assert Schema(3, 1, steps).pending() == []


class TestRefusals:
    """A file that this program must not touch."""

    def test_a_write_lock_of_another_process_is_told(self, path: str, plan: Know) -> None:
        """After the busy timeout; nothing has changed."""
        migrate(path, 1_000)
        other = apsw.Connection(path)
        other.execute("BEGIN IMMEDIATE")
        plan("CREATE TABLE late (a)")
        with pytest.raises(StoreUnavailable, match="busy"):
            migrate(path, 1)
        other.execute("ROLLBACK")
        other.close()
        assert schema(path)[0] == NEWEST
