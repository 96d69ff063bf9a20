"""The schema's steps: forward only, each whole or not at all, by one of several processes at once."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.storage import migrations
from petstore.storage.backend import backend_for
from petstore.storage.migrations import Migration, Schema
from petstore.storage.sqlite.schema import MIGRATIONS_PACKAGE, migrate, read
from tests.support.clock import ManualClock
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

    def test_a_new_file_gets_every_step(self, path: str) -> None:
        """And a second run has nothing to do."""
        ran = migrate(path, 1_000)
        assert len(ran) == NEWEST
        assert ran[0] == "0001_initial"
        assert migrate(path, 1_000) == []
        assert schema(path)[0] == NEWEST

    def test_only_what_is_missing_runs(self, path: str, plan: Know) -> None:
        """An older file gets the steps that it does not have, its data stays."""
        migrate(path, 1_000)
        connection = apsw.Connection(path)
        connection.execute("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold')")
        plan("CREATE TABLE first (a)", "CREATE TABLE second (b)")
        assert migrate(path, 1_000) == [
            f"{NEWEST + 1:04}_step_{NEWEST + 1}",
            f"{NEWEST + 2:04}_step_{NEWEST + 2}",
        ]
        assert connection.execute("SELECT name FROM pets").get == "Rex"
        connection.close()

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

    @pytest.mark.parametrize("version", [NEWEST + 1, NEWEST + 40])
    def test_a_newer_schema_is_refused_and_left_alone(self, path: str, version: int) -> None:
        """Exit 78: run the newer program, or restore a backup."""
        migrate(path, 1_000)
        connection = apsw.Connection(path)
        connection.execute(f"PRAGMA user_version = {version}")
        said = f"version {version} and needs a program that knows {version}; this one knows {NEWEST}"
        with pytest.raises(ConfigurationError, match=said):
            backend_for(f"sqlite:///{path}").open(ManualClock())
        assert read(connection).version == version
        connection.close()

    def test_a_half_applied_step_is_rolled_back(self, path: str, plan: Know) -> None:
        """A step fails in its second statement: nothing of it stays, the steps before it do."""
        migrate(path, 1_000)
        before = schema(path)
        plan("CREATE TABLE good (a)", "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1)")
        with pytest.raises(StoreUnavailable):
            migrate(path, 1_000)
        assert schema(path) == (NEWEST + 1, sorted([*before[1], "good"]))
        plan("CREATE TABLE good (a)", "CREATE TABLE half (a)")
        assert migrate(path, 1_000) == [f"{NEWEST + 2:04}_step_{NEWEST + 2}"]

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
