"""What single steps of the schema keep in SQLite, where a table is made anew to change it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from petstore.core.errors import StoreUnavailable
from petstore.storage import migrations
from petstore.storage.sqlite.schema import MIGRATIONS_PACKAGE, migrate
from tests.support.schemas import knowing

HOLD = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def test_the_consoles_step_keeps_what_was_created() -> None:
    """Keys of before are known after it, to programs of 1.0.0 too; a form's key needs no account."""
    steps = migrations.load(MIGRATIONS_PACKAGE)
    connection = apsw.Connection(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    kept = (1, "k", b"f" * 32, 7, 1_000)
    for step in steps:
        if step.name == "console":
            connection.execute("INSERT INTO accounts VALUES (1, 'shop', 'free', 60, 1000, 0, NULL, NULL)")
            connection.execute("INSERT INTO idempotency_keys VALUES (?, ?, ?, ?, ?)", kept)
            connection.execute(
                "INSERT INTO creations (account_id, key, fingerprint, resource_id, created_at_ms, resource)"
                " VALUES (1, 'o', x'00', 3, 2000, 'order')"
            )
        connection.execute(step.sql)
    assert list(connection.execute("SELECT * FROM idempotency_keys")) == [kept]
    assert list(connection.execute("SELECT resource_id FROM creations WHERE resource = 'order'")) == [(3,)]
    connection.execute("INSERT INTO idempotency_keys VALUES (0, 'form', x'00', 8, 3000)")
    connection.execute("DELETE FROM idempotency_keys WHERE account_id = 1")
    assert list(connection.execute("SELECT account_id, key FROM creations ORDER BY 1")) == [
        (0, "form"),
        (1, "o"),
    ]


@pytest.mark.parametrize("log", ["wal", "delete"])
def test_the_process_that_holds_a_step_up_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    """An import or a shell that writes; with a write-ahead log, and in an older file that has none."""
    path = str(tmp_path / "petstore.db")
    migrate(path, 0)
    with closing(apsw.Connection(path)) as file:
        file.execute(f"PRAGMA journal_mode = {log}")
    knowing(monkeypatch)("CREATE TABLE first (a integer)")
    command = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StoreUnavailable) as refused:
            migrate(path, 0)
        other.communicate()
    holder = f"process {other.pid} ({Path(sys.executable).name})"
    assert refused.value.message == (
        f"The migration is held up by {holder}. 0 of 1 steps are done; repeat the command to go on."
    )
    assert len(migrate(path, 0)) == 1
