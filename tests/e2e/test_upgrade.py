"""A newer program takes the place of an older one, as real processes; `make upgrade` does it with history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.postgres import fresh_database, run
from tests.support.programs import Copy
from tests.support.server import issue_key, running_server
from tools.servers import petstore

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-upgrade")]


@pytest.fixture
def later(tmp_path: Path) -> Copy:
    """A newer program, with one more step in each store that lets older programs go on."""
    (tmp_path / "later").mkdir()
    copy = Copy(tmp_path / "later")
    copy.add_step()
    return copy


def ended(program: Path, folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A run that ends by itself."""
    return petstore.run(*words, settings=settings, program=program, cwd=folder)


class TestSqlite:
    """One server, one file."""

    def test_a_start_migrates_and_keeps_the_database_of_before(self, tmp_path: Path, later: Copy) -> None:
        """A program that may not migrate ends with 78 and the command to run, and leaves the file as it is.
        A later program migrates and says so; the program of before starts again, and says what it found."""
        key = issue_key(tmp_path / "petstore.db")
        before = (tmp_path / "petstore.db").read_bytes()
        done = ended(later.program, tmp_path, "serve", migrate="off")
        assert (done.returncode, "Run `petstore db migrate`" in done.stderr) == (78, True), done.stderr
        assert (tmp_path / "petstore.db").read_bytes() == before
        with running_server(tmp_path, program=later.program) as server, server.client(key) as client:
            (kept,) = tmp_path.glob("petstore.db.before-migration-*")
            assert f"The previous database is kept as {kept}." in server.log
            assert "_made_up" in server.log
            assert client.pets.create(name="Rex", category_id=1).id == 1
        with running_server(tmp_path) as server, server.client(key) as client:
            assert "and may go on with it" in server.log
            assert [pet.name for pet in client.pets.list()] == ["Rex"]
            assert client.pets.create(name="Mia", category_id=1).id == 2
        with running_server(tmp_path, program=later.program) as server, server.client(key) as client:
            assert "kept as" not in server.log
            assert len(list(client.pets.list())) == 2


class TestPostgres:
    """Replicas of the version before may be at work."""

    def test_a_start_does_not_migrate_by_itself(self, tmp_path: Path, later: Copy) -> None:
        """It ends with 78 and names the command; with PETSTORE_MIGRATE=on it does. An empty database is made,
        without a word about migrations."""
        with fresh_database() as url:
            with running_server(tmp_path, database_url=url) as server:
                assert "migrat" not in server.log
                assert server.request("GET", "/v1/pets").status == 200
            newest = run(url, "SELECT max(number) FROM schema_steps")
            done = ended(later.program, tmp_path, "serve", database_url=url)
            assert (done.returncode, "Run `petstore db migrate`" in done.stderr) == (78, True), done.stderr
            assert run(url, "SELECT max(number) FROM schema_steps") == newest
            with running_server(tmp_path, program=later.program, database_url=url, migrate="on") as server:
                assert "applied" in server.log
