"""`petstore db migrate`, and commands of neighbouring versions on one SQLite file.

A newer program is this one, made to know further steps; an older one is this one as it is.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from petstore.storage import migrations
from petstore.storage.sqlite import schema
from tests.cli.conftest import Cli
from tests.cli.test_db import damage
from tests.support.schemas import Know, knowing

EXPAND = "ALTER TABLE pets ADD COLUMN chip TEXT NOT NULL DEFAULT ''"
CONTRACT = ("ALTER TABLE pets RENAME COLUMN name TO title", 0)
STEPS = migrations.load(schema.MIGRATIONS_PACKAGE)
NOW = len(STEPS)
# Those that `know` makes up.
STEP = [f"{NOW + more:04}_step_{NOW + more}" for more in (1, 2)]
COPY = f".before-migration-{NOW}-20270115T080030Z"
COMMANDS = ("accounts add zoo --plan free", "keys revoke 1", "usage shop", "pets list")


@pytest.fixture
def know(monkeypatch: pytest.MonkeyPatch) -> Know:
    return knowing(monkeypatch)


@pytest.fixture
def store(shop: Cli) -> Cli:
    """A store with a key and an animal, by this program as it is."""
    shop.issue("shop")
    shop.ok("pets", "add", "Rex", "--category", "1")
    return shop


def content(cli: Cli) -> bytes:
    return cli.database.read_bytes()


def test_staging_migrates_no_production(store: Cli, know: Know) -> None:
    """A start or a command with PETSTORE_STAGE=staging leaves production's older schema as it is: a key for
    production tells whose it is before there is a stamp."""
    before = content(store)
    know(EXPAND)
    store.settings["PETSTORE_STAGE"] = "staging"
    assert "has keys for production" in store.refused(78, "db", "migrate")
    assert (content(store), copies(store)) == (before, [])


def migrated(store: Cli, know: Know, *steps: object) -> Cli:
    """A store that a newer program has migrated."""
    know(*steps)
    store.ok("db", "migrate")
    know()
    return store


def copies(cli: Cli) -> list[str]:
    return sorted(path.name for path in cli.folder.glob("*before*"))


class TestOlderSchema:
    """A newer program meets a database that was not migrated."""

    def test_no_command_migrates(self, store: Cli, know: Know) -> None:
        """It says what to do, with the code of a wrong setting, and changes no byte."""
        before = content(store)
        know(EXPAND)
        for line in COMMANDS:
            message = store.refused(78, *line.split())
            assert (
                f"has schema version {NOW}, this program needs {NOW + 1}. Run `petstore db migrate`"
                in message
            )
        assert content(store) == before

    def test_it_can_be_checked_and_backed_up(self, store: Cli, know: Know) -> None:
        """What one wants before a migration; both say that one is due."""
        before = content(store)
        know(EXPAND)
        remark = (
            f"remark: the schema has version {NOW}, this program needs {NOW + 1}: run `petstore db migrate`\n"
        )
        assert store.ok("db", "check").endswith("sound           yes\n" + remark)
        assert store.ok("db", "backup", str(store.folder / "copy.db")).endswith(remark)
        assert content(store) == before

    def test_it_is_not_copied_to_another_store(self, store: Cli, know: Know) -> None:
        """It lacks what the target has."""
        know(EXPAND)
        message = store.refused(78, "db", "copy", f"sqlite:///{store.database}", "postgresql:///nowhere")
        assert f"was not copied: the schema has version {NOW}, this program needs {NOW + 1}" in message


class TestMigrate:
    """What the one command that migrates says and leaves behind."""

    def test_a_dry_run_names_the_steps_and_changes_nothing(self, store: Cli, know: Know) -> None:
        """An operator sees what an upgrade will do."""
        before = content(store)
        know(EXPAND, CONTRACT)
        assert store.ok("db", "migrate", "--dry-run") == f"would apply {STEP[0]}\nwould apply {STEP[1]}\n"
        assert store.json("db", "migrate", "--dry-run")["pending"] == STEP
        assert content(store) == before

    def test_a_new_database_is_made_once_and_without_a_copy(self, cli: Cli) -> None:
        """A dry run makes none."""
        assert cli.ok("db", "migrate", "--dry-run") == "".join(
            f"would apply {step.title}\n" for step in STEPS
        )
        assert list(cli.folder.iterdir()) == []
        made = {"database": str(cli.database), "applied": [step.title for step in STEPS], "backup": None}
        assert cli.json("db", "migrate") == made
        assert cli.json("db", "migrate") == made | {"applied": []}
        assert copies(cli) == []

    def test_the_database_of_before_is_kept(self, store: Cli, know: Know) -> None:
        """Beside it, checked, for its owner alone, with a name that says which schema and when."""
        know(EXPAND)
        kept = Path(f"{store.database}{COPY}")
        said = store.ok("db", "migrate")
        assert said == f"The previous database is kept as {kept}.\napplied {STEP[0]}\n"
        assert kept.stat().st_mode & 0o777 == 0o600
        with sqlite3.connect(kept) as connection:
            assert connection.execute("PRAGMA user_version").fetchall() == [(STEPS[-1].oldest,)]
            assert connection.execute("SELECT id, name, category_id, status FROM pets").fetchall() == [
                (1, "Rex", 1, "available")
            ]
        assert store.ok("db", "migrate") == "The schema is up to date.\n"

    def test_a_file_that_every_user_could_open_is_closed(self, store: Cli) -> None:
        """It is said once, beside the answer; with nothing to migrate as well."""
        store.database.chmod(0o644)
        line = f"Other users of this machine could open {store.database}; its mode is 600 now.\n"
        results = [store.run("db", "migrate") for _ in range(2)]
        assert [(each.stdout, each.stderr) for each in results] == [
            ("The schema is up to date.\n", line),
            ("The schema is up to date.\n", ""),
        ]
        assert store.database.stat().st_mode & 0o777 == 0o600

    def test_going_back_is_a_restore_of_the_copy(self, store: Cli, know: Know) -> None:
        """The older program restores, which the newer schema has shut out."""
        know(EXPAND, CONTRACT)
        kept = store.json("db", "migrate")["backup"]
        know()
        store.refused(78, "pets", "list")
        store.ok("db", "restore", kept, "--yes", str(store.database))
        assert store.json("pets", "list")[0]["name"] == "Rex"

    def test_a_damaged_database_is_left_alone(self, store: Cli, know: Know) -> None:
        """A copy of it is not sound, so there would be no way back."""
        damage(store, 9)
        know(EXPAND)
        assert "is damaged and was not migrated: api_keys: row 9" in store.refused(1, "db", "migrate")
        with sqlite3.connect(store.database) as connection:
            assert connection.execute("SELECT max(number) FROM schema_steps").fetchall() == [(NOW,)]

    def test_what_a_killed_migration_has_left_goes(self, store: Cli, know: Know) -> None:
        """Half a copy, or a whole one from before its step was done: a service in a loop fills no disk."""
        for suffix in ("", ".partial", ".partial-journal"):
            Path(f"{store.database}.before-migration-{NOW}{suffix}").write_text("left")
        know(EXPAND)
        store.ok("db", "migrate")
        assert copies(store) == [f"petstore.db{COPY}"]

    def test_a_step_that_fails_leaves_one_copy_at_most(self, store: Cli, know: Know) -> None:
        """It names the step and what is wrong with it. A service that is started anew fills no disk."""
        know("INSERT INTO nowhere VALUES (1)")
        store.refused(75, "db", "migrate")
        message = store.refused(75, "db", "migrate")
        assert f"The migration {STEP[0]} failed, and nothing of it was kept: no such table" in message
        assert copies(store) == [f"petstore.db.before-migration-{NOW}"]
        know(EXPAND, "INSERT INTO nowhere VALUES (1)")
        result = store.run("db", "migrate")
        assert result.exit_code == 75, result.stdout
        assert f"applied {STEP[0]}" in result.stdout
        assert copies(store) == [f"petstore.db{COPY}"]

    def test_a_step_that_shuts_out_waits_for_the_server_to_stop(self, store: Cli, know: Know) -> None:
        """An expanding one does not: the server may go on, whichever version it is."""
        with store.hold():
            know(EXPAND)
            store.ok("db", "migrate")
            know(EXPAND, CONTRACT)
            assert "stop it first" in store.refused(1, "db", "migrate")
        assert store.ok("db", "migrate").endswith(f"applied {STEP[1]}\n")


class TestNewerSchema:
    """An older program meets a database that a newer one has migrated."""

    @pytest.fixture
    def expanded(self, store: Cli, know: Know) -> Cli:
        return migrated(store, know, EXPAND)

    @pytest.fixture
    def contracted(self, store: Cli, know: Know) -> Cli:
        return migrated(store, know, EXPAND, CONTRACT)

    def test_commands_go_on(self, expanded: Cli) -> None:
        """Above all `keys revoke`: a leaked key does not wait for an upgrade."""
        for line in COMMANDS:
            expanded.ok(*line.split())

    def test_it_is_checked_backed_up_and_restored(self, expanded: Cli) -> None:
        """A newer schema is checked, backed up and restored as usual; a script's `db migrate` is no error."""
        said = f"the schema has version {NOW + 1}; this program knows {NOW}, and may go on with it"
        report = expanded.json("db", "check")
        assert (report["schemaVersion"], report["pets"], report["problems"]) == (NOW + 1, 1, [])
        assert report["remark"] == said
        assert expanded.ok("db", "migrate") == f"Nothing to do: {said}.\n"
        copy = str(expanded.folder / "copy.db")
        assert expanded.json("db", "backup", copy)["pets"] == 1
        assert expanded.json("db", "restore", copy, "--yes", str(expanded.database))["pets"] == 1

    def test_it_is_not_copied_to_another_store(self, expanded: Cli) -> None:
        """What this program does not know would stay behind."""
        message = expanded.refused(
            78, "db", "copy", f"sqlite:///{expanded.database}", "postgresql:///nowhere"
        )
        assert f"was not copied: the schema has version {NOW + 1}; this program knows {NOW}" in message

    def test_commands_are_refused_when_it_has_left_them_behind(self, contracted: Cli) -> None:
        """The exit status is that of a wrong setting; no byte changes."""
        before, told = content(contracted), f"has schema version {NOW + 2} and needs a program that knows"
        for line in COMMANDS:
            message = contracted.refused(78, *line.split())
            assert f"{told} {NOW + 2}; this one knows {NOW}" in message
        assert content(contracted) == before

    def test_a_backup_of_it_is_no_damage(self, contracted: Cli) -> None:
        """The copy is whole and checked; a job that makes backups does not fail."""
        target = contracted.folder / "copy.db"
        result = contracted.run("db", "backup", str(target))
        assert (result.exit_code, result.stderr) == (0, f"Written to {target}.\n")
        assert "animals         not counted\n" in result.stdout
        assert (
            f"sound           yes\nremark: the schema has version {NOW + 2} and needs a newer program"
            in result.stdout
        )
        assert json.loads(contracted.ok("db", "backup", f"{target}-2", "--json"))["pets"] is None
