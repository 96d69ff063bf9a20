"""Who may open the files of a database."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from petstore.storage.sqlite import start_checks
from petstore.storage.sqlite.connection import open_writer
from petstore.storage.sqlite.schema import migrate
from tests.support.clock import ManualClock


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.glob("petstore.db*")}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database in a directory that everybody may enter."""
    tmp_path.chmod(0o755)
    migrate(str(tmp_path / "petstore.db"), 0)
    return tmp_path / "petstore.db"


def test_a_writer_closes_the_database_and_its_log(database: Path) -> None:
    """Every program of the service that writes, also while others have the file open."""
    with closing(open_writer(str(database), 0)):
        for name in modes(database.parent):
            database.with_name(name).chmod(0o644)
        with closing(open_writer(str(database), 0)):
            assert modes(database.parent) == dict.fromkeys(
                ("petstore.db", "petstore.db-wal", "petstore.db-shm"), 0o600
            )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_left(database: Path) -> None:
    """The start says what its owner can do."""
    os.chown(database, 1_234, 1_234)
    database.chmod(0o644)
    (line,) = start_checks.warnings(str(database), 0, ManualClock())
    assert line == f"{database} can be read by every user of this machine. To end that: chmod 600 {database}."
    open_writer(str(database), 0).close()
    assert modes(database.parent) == {"petstore.db": 0o644}
