"""The command `petstore` of an installation, called by root and by a person with sudo, without a server."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from petstore.core.clock import SystemClock
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, PetStatus
from petstore.storage.backend import backend_for
from tests.docs.documents import section, text_of
from tests.docs.sessions import run, steps, unmet
from tests.support.installed import PERSON, SERVICE_UID, Installed
from tests.support.journal import ACTOR
from tests.support.programs import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CALLERS = ["root", PERSON]


@pytest.fixture
async def installed(tmp_path: Path) -> Installed:
    """A machine with the database that the drill of operations.md shows, and a backup of it."""
    installed = Installed(tmp_path)
    backend = backend_for(f"sqlite:///{installed.database}")
    store = backend.open(SystemClock())
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await store.pets.add(NewPet("Mia", 2, PetStatus.PENDING), ACTOR)
    await store.accounts.add("local", FREE, ACTOR)
    await store.keys.issue("local", "live", ACTOR)
    await store.close()
    backend.require_file().back_up(installed.state / "copy.db")
    for file in installed.state.iterdir():
        os.chown(file, SERVICE_UID, SERVICE_UID)
    return installed


@pytest.mark.parametrize("caller", CALLERS)
def test_the_restore_drill_leaves_production_as_it_is(
    installed: Installed, caller: str, tmp_path: Path
) -> None:
    """The lines of the document: a copy, restored beside the database, has the same; then it is gone."""
    before, files = installed.database.read_bytes(), {path.name for path in installed.state.iterdir()}
    session = steps(section(text_of(ROOT / "docs" / "operations.md"), "Backup and restore"))
    assert unmet(session, run(session, tmp_path, None, installed.prefix(caller))) == ""
    assert installed.database.read_bytes() == before
    left = {path.name for path in installed.state.iterdir()} - files
    assert left <= {"petstore.db.last-backup", "petstore.db.lock"}


@pytest.mark.parametrize("caller", CALLERS)
def test_a_variable_never_decides_what_is_replaced(installed: Installed, caller: str) -> None:
    """The drill of 1.1.0. The command refuses a variable; where sudo has dropped it, consent is missing."""
    before = installed.database.read_bytes()
    done = installed.run(
        caller,
        """export PETSTORE_DATABASE_URL=sqlite:////var/lib/petstore/restored.db
        petstore db restore /var/lib/petstore/copy.db || echo $?
        sudo petstore db restore /var/lib/petstore/copy.db || echo $?""",
    )
    assert done.stdout.split() == ["78", "1"]
    first, second = done.stderr.splitlines()
    assert first.endswith("alone. First: unset PETSTORE_DATABASE_URL")
    assert second.startswith("petstore: Add --yes /var/lib/petstore/petstore.db to agree: ")
    assert installed.database.read_bytes() == before


def test_the_journal_names_who_called_it(installed: Installed) -> None:
    """Root, who may name somebody, and a person, who calls the command by sudo or lets it call sudo."""
    done = installed.run(
        "root",
        f"""petstore accounts add first --plan free
        PETSTORE_ACTOR=ben petstore accounts add second --plan free
        runuser --user {PERSON} -- petstore accounts add third --plan free
        runuser --user {PERSON} -- sudo petstore accounts add fourth --plan free""",
    )
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(installed.database) as connection:
        actors = connection.execute("SELECT actor FROM journal ORDER BY id DESC LIMIT 4").fetchall()
    assert actors[::-1] == [("cli:root",), ("cli:ben",), (f"cli:{PERSON}",), (f"cli:{PERSON}",)]
