"""Neighbouring versions of the program on one database: who may use which schema, on both stores.

A newer program is this one, made to know further steps; an older one is this one as it is.
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import pytest

from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, PetQuery
from petstore.storage import migrations
from petstore.storage.backend import backend_for, sqlite_path
from petstore.storage.postgres import schema as postgres
from petstore.storage.sqlite import schema as sqlite
from tests.support.backends import execute_at, opened_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.schemas import FIRST_RELEASE, Know, knowing, migrate

# With a default, so that a program that does not know the column can add rows.
EXPAND = "ALTER TABLE pets ADD COLUMN chip text NOT NULL DEFAULT ''"
_numbers = count(1)
CONTRACT = "ALTER TABLE accounts RENAME COLUMN name TO title"


@pytest.fixture
def know(monkeypatch: pytest.MonkeyPatch) -> Know:
    return knowing(monkeypatch)


def version_for_the_first_release(url: str) -> int:
    """The schema's version where 1.0.0 looks for it."""
    sql = "PRAGMA user_version" if url.startswith("sqlite") else "SELECT max(number) FROM schema_migrations"
    return int(execute_at(url, sql)[0][0])


def newest(url: str) -> int:
    package = sqlite.MIGRATIONS_PACKAGE if url.startswith("sqlite") else postgres.MIGRATIONS_PACKAGE
    return migrations.load(package)[-1].number


class TestSteps:
    """Numbered files, in order, each whole or not at all."""

    def test_a_step_that_fails_leaves_nothing_of_itself(self, url: str, know: Know) -> None:
        """It fails in its second statement: the steps before it stay, and a mended one runs."""
        migrate(url)
        number = newest(url) + 2
        before = execute_at(url, _TABLES[url.startswith("sqlite")])
        know("CREATE TABLE good (a integer)", "CREATE TABLE half (a integer); INSERT INTO nowhere VALUES (1)")
        with pytest.raises(StoreUnavailable):
            migrate(url)
        assert sorted(execute_at(url, _TABLES[url.startswith("sqlite")])) == sorted([*before, ("good",)])
        know("CREATE TABLE good (a integer)", "CREATE TABLE half (a integer)")
        assert migrate(url) == [f"{number:04}_step_{number}"]

    def test_nothing_is_created_by_looking(self, url: str) -> None:
        """`petstore db check` says of an empty database that it has no schema."""
        if url.startswith("sqlite"):
            Path(sqlite_path(url)).touch()
        assert backend_for(url).check().problems == ["the schema was never created"]
        assert execute_at(url, _TABLES[url.startswith("sqlite")]) == []


class TestExpanding:
    """A step that only adds: older programs go on."""

    async def test_an_older_program_goes_on(self, url: str, know: Know) -> None:
        """It opens the database that a newer one has migrated, adds, reads, and revokes keys. `db migrate`
        in a script that goes back is not an error."""
        migrate(url)
        know(EXPAND, "CREATE TABLE tags (id integer PRIMARY KEY)")
        assert len(migrate(url)) == 2
        know()
        assert migrate(url) == []
        async with opened_store(url, ManualClock()) as store:
            before = await store.versions.current()
            await store.pets.add(NewPet("Rex", 1), ACTOR)
            assert await store.versions.current() != before
            await store.accounts.add("shop", FREE, ACTOR)
            issued = await store.keys.issue("shop", "test", ACTOR)
            revoked = await store.keys.revoke(issued.record.id, ACTOR)
            assert revoked.revoked_at_ms is not None
            assert [pet.name for pet in (await store.pets.page(PetQuery())).pets] == ["Rex"]
        assert execute_at(url, "SELECT name, chip FROM pets") == [("Rex", "")]

    def test_what_ran_is_noted(self, url: str, know: Know) -> None:
        """The database has each step's number, name and oldest program. A second run changes nothing.
        The first release looks at one number, which an expanding step leaves where it was."""
        package = sqlite.MIGRATIONS_PACKAGE if url.startswith("sqlite") else postgres.MIGRATIONS_PACKAGE
        migrate(url)
        number = newest(url) + 1
        know(EXPAND)
        assert migrate(url) == [f"{number:04}_step_{number}"]
        assert migrate(url) == []
        oldest = version_for_the_first_release(url)
        assert oldest == FIRST_RELEASE[package]
        noted = execute_at(url, "SELECT number, name, oldest FROM schema_steps ORDER BY number DESC LIMIT 1")
        assert noted == [(number, f"step_{number}", oldest)]


class TestContracting:
    """A step that takes something away shuts older programs out."""

    def test_an_older_program_is_refused_before_it_does_anything(self, url: str, know: Know) -> None:
        """It would write rows that the newer schema misreads."""
        migrate(url)
        version = newest(url) + 2
        know(EXPAND, (CONTRACT, 0))
        migrate(url)
        know()
        said = f"has schema version {version} and needs a program that knows {version}; this one knows"
        for attempt in (lambda: backend_for(url).open(ManualClock()), lambda: migrate(url)):
            with pytest.raises(ConfigurationError, match=said):
                attempt()
        assert version_for_the_first_release(url) == version

    def test_its_check_counts_nothing(self, url: str, know: Know) -> None:
        """The tables may be others; nothing is damaged."""
        migrate(url)
        know(("ALTER TABLE pets RENAME TO animals", 0))
        migrate(url)
        know()
        report = backend_for(url).check()
        assert (report.schema_version, report.pets, report.problems) == (newest(url) + 1, None, [])
        assert f"has version {newest(url) + 1} and needs a newer program" in report.remark

    async def test_the_program_before_goes_on(self, url: str, know: Know) -> None:
        """A step may shut out the first release and leave in the one that no longer uses what it removes."""
        migrate(url)
        know(EXPAND)
        migrate(url)
        know(EXPAND, ("DROP VIEW pet_status_changes", 1))
        migrate(url)
        know(EXPAND)
        async with opened_store(url, ManualClock()) as store:
            await store.pets.add(NewPet("Rex", 1), ACTOR)
        know()
        with pytest.raises(ConfigurationError):
            backend_for(url).open(ManualClock())


class TestOlderSchema:
    """A newer program on a database that was not migrated yet."""

    def test_it_is_not_opened(self, url: str, know: Know) -> None:
        """The command that migrates is named, and nothing changes."""
        migrate(url)
        was = newest(url)
        know(EXPAND)
        said = f"has schema version {was}, this program needs {was + 1}. Run `petstore db migrate`"
        with pytest.raises(ConfigurationError, match=said):
            backend_for(url).open(ManualClock())
        assert execute_at(url, "SELECT max(number) FROM schema_steps") == [(was,)]

    def test_a_new_database_is_never_half_made(self, url: str, know: Know) -> None:
        """All steps or none: a program that looks meanwhile would be told to migrate."""
        know(EXPAND, "CREATE TABLE half (a integer); INSERT INTO nowhere VALUES (1)")
        with pytest.raises(StoreUnavailable, match=rf"migration \d+_step_{newest(url)} failed, .*nowhere"):
            migrate(url)
        assert "schema_steps" not in str(execute_at(url, _TABLES[url.startswith("sqlite")]))


_TABLES = {
    True: "SELECT name FROM sqlite_schema",
    False: "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
}


class TestFiles:
    """The first line of each file says which programs may go on."""

    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A package of migrations of its own, to write files into."""
        folder = tmp_path / f"steps_{next(_numbers)}"
        folder.mkdir()
        (folder / "__init__.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path))
        return folder

    def test_the_line_is_read(self, package: Path) -> None:
        """An expanding step repeats the number before it, a contracting one raises it."""
        (package / "0001_initial.sql").write_text("-- oldest: 1\nSELECT 1")
        (package / "0002_more.sql").write_text("-- oldest: 1\nSELECT 2")
        (package / "0003_less.sql").write_text("-- oldest: 2\nSELECT 3")
        assert [step.oldest for step in migrations.load(package.name)] == [1, 1, 2]

    @pytest.mark.parametrize("line", ["", "-- oldest: 3\n", "-- oldest: 0\n", "-- oldest:2\n"])
    def test_a_wrong_line_is_noticed(self, package: Path, line: str) -> None:
        """Missing, greater than the step's own number, or less than that of the step before."""
        (package / "0001_initial.sql").write_text("-- oldest: 1\nSELECT 1")
        (package / "0002_more.sql").write_text(f"{line}SELECT 2")
        with pytest.raises(AssertionError, match="0002_more"):
            migrations.load(package.name)

    def test_files_are_read_once(self, package: Path) -> None:
        """A newer program in the place of a running one brings steps that the running one must not take."""
        (package / "0001_initial.sql").write_text("-- oldest: 1\nSELECT 1")
        assert len(migrations.load(package.name)) == 1
        (package / "0002_more.sql").write_text("-- oldest: 1\nSELECT 2")
        assert len(migrations.load(package.name)) == 1

    @pytest.mark.parametrize("name", FIRST_RELEASE)
    def test_the_numbers_have_no_gap(self, name: str) -> None:
        """1, 2, 3 … and each names its file."""
        steps = migrations.load(name)
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))
        assert all(re.fullmatch(r"[a-z0-9_]+", step.name) for step in steps)

    @pytest.mark.parametrize("name", FIRST_RELEASE)
    def test_the_first_release_was_never_shut_out(self, name: str) -> None:
        """No step shuts out the first release yet; the first that must changes this and the changelog."""
        assert migrations.load(name)[-1].oldest == FIRST_RELEASE[name]
