"""`petstore db`. What it refuses beside a server: test_process.py; other refusals: tests/storage/sqlite."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support.rights import without_rights
from tools.servers import petstore

KEPT = ".before-restore-20270115T080030Z"


def damage(shop: Cli, key_id: int = 1) -> None:
    """A key of nobody, written past the constraints."""
    with sqlite3.connect(shop.database) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(
            "INSERT INTO api_keys VALUES (?, 9, zeroblob(32), '', '', 0, NULL, NULL, 0, 'write')", (key_id,)
        )


class TestCheck:
    def test_a_damaged_database_is_told_with_every_problem(self, shop: Cli) -> None:
        """Exit code 1, every problem, and what to do."""
        damage(shop)
        result = shop.run("db", "check")
        assert result.exit_code == 1
        assert "problem: api_keys: row 1 refers to a missing row of accounts" in result.stdout
        assert "petstore db restore FILE" in result.stderr

    def test_schema_that_is_too_new(self, cli: Cli) -> None:
        """Sound, and nothing for this program: a matter of configuration, as for every command."""
        cli.ok("db", "migrate")
        with sqlite3.connect(cli.database) as connection:
            connection.execute("PRAGMA user_version = 99")
        result = cli.run("db", "check")
        assert result.exit_code == 78
        assert (
            "keys            not counted\nsound           yes\nremark: the schema has version 99"
            in result.stdout
        )
        assert result.stderr.startswith("petstore: The database has schema version 99")

    def test_what_is_no_file_is_left_alone(self, cli: Cli) -> None:
        """A folder, one that is not there, a pipe, a device, a link to itself, and names longer than systems
        take: every command says so and stops for good. It makes no folder, and changes no modes: /dev/null
        without its own would break the machine.
        """
        pipe, loop = cli.folder / "pipe", cli.folder / "loop"
        os.mkfifo(pipe, 0o666)
        pipe.chmod(0o666)
        loop.symlink_to(loop)
        for place, refusal in (
            (cli.folder, "is a directory; name a file in it"),
            (cli.folder / "no" / "petstore.db", "there is no directory"),
            (pipe, "pipe is a device or a pipe; name a file."),
            (loop, "Too many levels of symbolic links; name another file."),
            (cli.folder / ("x" * 300), "File name too long; name another file."),
            (cli.folder / ("x" * 250 + "/") / ("y" * 250), "bytes; SQLite takes 504."),
        ):
            cli.settings["PETSTORE_DATABASE_URL"] = f"sqlite:///{place}"
            for command in ("db migrate", "db check", "pets list", "db backup b.db", "serve"):
                assert refusal in cli.refused(78, *command.split())
        assert stat.S_IMODE(pipe.stat().st_mode) == 0o666

    def test_a_file_that_is_no_database_is_a_finding(self, cli: Cli) -> None:
        """`db check` finds that a file is no database; it is not an outage, which might pass."""
        cli.database.write_text("no database at all, but long enough to look at" * 50)
        result = cli.run("db", "check", "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["problems"] == ["the file is not a database"]
        assert result.stderr == ""

    def test_a_flipped_bit_of_the_header_is_found(self, shop: Cli) -> None:
        """SQLite reads all of it, and the service can store nothing."""
        content = bytearray(shop.database.read_bytes())
        content[18] |= 64
        shop.database.write_bytes(content)
        result = shop.run("db", "check")
        assert result.exit_code == 1
        assert "sound           no\nproblem: its header says that SQLite is too old" in result.stdout


class TestBackup:
    def test_its_time_is_noted_for_metrics(self, shop: Cli) -> None:
        """Beside the database, for a sound one alone; where that fails, the backup is good nevertheless."""
        mark = shop.folder / "petstore.db.last-backup"
        shop.ok("db", "backup", str(shop.folder / "first.db"))
        os.utime(mark, (1, 1))
        shop.ok("db", "backup", str(shop.folder / "second.db"))
        assert mark.stat().st_mtime > 1
        mark.unlink()
        mark.symlink_to(shop.folder / "absent" / "mark")
        result = shop.run("db", "backup", str(shop.folder / "third.db"))
        assert result.exit_code == 0
        assert "its time could not be noted" in result.stderr
        mark.unlink()
        damage(shop)
        assert shop.run("db", "backup", str(shop.folder / "fourth.db")).exit_code == 1
        assert not mark.exists()

    def test_the_copy_of_a_damaged_database_is_kept_and_told(self, shop: Cli) -> None:
        """The copy is there, for what it is worth; exit code 1 makes a job fail that nobody looks at."""
        damage(shop)
        target = shop.folder / "copy.db"
        result = shop.run("db", "backup", str(target))
        assert (result.exit_code, target.exists()) == (1, True)
        assert "problem: api_keys: row 1 refers to a missing row of accounts" in result.stdout
        assert "The copy is not sound" in result.stderr
        target.unlink()
        result = shop.run("db", "backup", str(target), "--json")
        assert (result.exit_code, result.stderr) == (1, "")
        assert len(json.loads(result.stdout)["problems"]) == 1

    def test_a_place_that_cannot_be_written(self, shop: Cli) -> None:
        """It is the target that is named, and no job should try it again: exit code 1."""
        place = shop.folder / "backups"
        place.mkdir(mode=0o500)
        url = f"sqlite:///{shop.database}"
        ended = petstore.run(
            "db", "backup", place / "x.db", settings={"database_url": url}, prefix=without_rights()
        )
        assert ended.returncode == 1
        assert ended.stderr == (
            f"petstore: The backup can't be written to {place}/x.db: Permission denied."
            " Let this user write there, or name another place.\n"
        )


class TestRestore:
    def test_a_place_that_cannot_be_written(self, shop: Cli) -> None:
        """The error names what could not be made."""
        place = shop.folder / "restored"
        place.mkdir(mode=0o500)
        words = ("db", "restore", shop.database, "--into", place / "x.db")
        ended = petstore.run(*words, settings={}, prefix=without_rights())
        assert ended.returncode == 1
        assert ended.stderr == f"petstore: {place}/x.db.lock: Permission denied.\n"

    @pytest.fixture
    def copy(self, shop: Cli) -> Path:
        """A backup with one account, while the database has two."""
        target = shop.folder / "copy.db"
        shop.ok("db", "backup", str(target))
        shop.ok("accounts", "add", "later", "--plan", "free")
        return target

    def put_back(self, shop: Cli, copy: Path) -> Any:
        return shop.json("db", "restore", str(copy), "--yes", str(shop.database))

    def test_puts_the_backup_in_place(self, shop: Cli, copy: Path) -> None:
        """What came after the backup is gone, and kept in the file beside."""
        restored = self.put_back(shop, copy)
        assert (restored["accounts"], restored["kept"]) == (1, f"{shop.database}{KEPT}")
        assert (restored["source"], restored["target"]) == (str(copy), str(shop.database))
        assert [account["name"] for account in shop.json("accounts", "list")] == ["shop"]
        shop.settings["PETSTORE_DATABASE_URL"] += KEPT
        assert len(shop.json("accounts", "list")) == 2

    @pytest.mark.parametrize("option", ["--into", "--yes"])
    def test_a_backup_that_is_none(self, shop: Cli, copy: Path, option: str) -> None:
        """The backup is named, not the database of the settings: that one is sound."""
        copy.write_text("no database at all, but long enough to look at" * 50)
        target = str(shop.database if option == "--yes" else shop.folder / "other.db")
        assert shop.refused(1, "db", "restore", str(copy), option, target) == (
            f"petstore: {copy} is damaged and was not restored: the file is not a database.\n"
        )

    def test_where_there_is_no_database(self, shop: Cli, copy: Path) -> None:
        """A restore to a new machine or another file replaces nothing, so nothing is asked."""
        result = shop.run("db", "restore", str(copy), "--into", f"{shop.folder}/other.db")
        assert (result.exit_code, result.stderr) == (0, f"Restored {shop.folder}/other.db from {copy}.\n")
        assert len(shop.json("accounts", "list")) == 2
        shop.settings["PETSTORE_DATABASE_URL"] = f"sqlite:///{shop.folder}/newer.db"
        assert shop.json("db", "restore", str(copy))["kept"] is None

    @pytest.mark.parametrize("into", [None, "link.db", "sqlite:///{database}"])
    def test_nothing_is_replaced_without_consent(self, shop: Cli, copy: Path, into: str | None) -> None:
        """Whatever name the database has in the command: it is named in full, and how to agree."""
        (shop.folder / "link.db").symlink_to(shop.database)
        before = shop.database.read_bytes()
        named = [] if into is None else ["--into", into.format(database=shop.database)]
        if into == "link.db":
            named = ["--into", str(shop.folder / "link.db")]
        message = shop.refused(1, "db", "restore", str(copy), *named)
        assert message == (
            f"petstore: Add --yes {shop.database} to agree: {shop.database} (animals: 0, last change:"
            f" 2027-01-15 08:00:30Z) would be replaced by {copy}.\n"
        )
        assert shop.database.read_bytes() == before
        restored = shop.json("db", "restore", str(copy), *named, "--yes", f"sqlite:///{shop.database}")
        assert restored["accounts"] == 1

    def test_the_consent_that_it_proposes_can_be_pasted(self, shop: Cli, copy: Path) -> None:
        """A path with a space and an apostrophe is quoted as a shell needs it."""
        (shop.folder / "anna's shop").mkdir()
        named = ["db", "restore", str(copy), "--into", str(shop.folder / "anna's shop" / "x.db")]
        shop.ok(*named)
        proposed = shop.refused(1, *named).partition("Add ")[2].partition(" to agree: ")[0]
        assert shop.run(*named, *shlex.split(proposed)).exit_code == 0

    @pytest.mark.parametrize("there", [True, False])
    def test_consent_to_another_target_is_none(self, shop: Cli, copy: Path, there: bool) -> None:
        """A script names what it replaces, in full; elsewhere it is refused, also where nothing is."""
        if not there:
            shop.settings["PETSTORE_DATABASE_URL"] = f"sqlite:///{shop.folder}/other.db"
        before = shop.database.read_bytes()
        server = "postgresql://petstore:password@db/petstore"
        for name in ("petstore.db", f"{shop.folder}/another.db", f"{shop.folder}/./petstore.db", "", server):
            message = shop.refused(1, "db", "restore", str(copy), "--yes", name)
            assert message.startswith(f"petstore: This is about {shop.folder}/")
            assert message.endswith("--yes names another database. Nothing was restored.\n")
        assert shop.database.read_bytes() == before
        assert not (shop.folder / "other.db").exists()

    def test_on_a_terminal_it_asks(self, shop: Cli, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The question has both names; anything but yes changes nothing."""
        monkeypatch.setattr("petstore.cli.db.asks", lambda yes: not yes)
        question = (
            f"Replace {shop.database} (animals: 0, last change: 2027-01-15 08:00:30Z) by {copy}? [y/N]: "
        )
        refused = shop.run("db", "restore", str(copy), stdin="n\n")
        assert refused.exit_code == 1
        assert question in refused.stderr
        assert "Nothing was changed" in refused.stderr
        assert len(shop.json("accounts", "list")) == 2
        assert shop.run("db", "restore", str(copy), stdin="y\n").exit_code == 0
        assert len(shop.json("accounts", "list")) == 1

    @pytest.mark.parametrize(
        ("into", "reason"),
        [
            ("absent/x.db", "--into: there is no directory"),
            ("mysql://x", "--into is not understood"),
            ("", "--into is not understood"),
        ],
    )
    def test_a_target_that_is_none(self, shop: Cli, copy: Path, into: str, reason: str) -> None:
        """The option is named, not the setting that it stands for."""
        assert reason in shop.refused(2, "db", "restore", str(copy), "--into", into)

    def test_a_damaged_database_is_replaced_like_any(self, shop: Cli, copy: Path) -> None:
        """It is said that nothing could be counted."""
        shop.database.write_bytes(b"no database at all, " * 500)
        assert "(animals: not counted, last change: unknown)" in shop.refused(1, "db", "restore", str(copy))
        assert self.put_back(shop, copy)["accounts"] == 1


@pytest.mark.parametrize("command", ["backup", "restore", "into"])
def test_a_name_that_is_not_utf_8_is_refused(shop: Cli, command: str) -> None:
    """A file name that is not UTF-8, as on an older system, is refused, since SQLite takes none."""
    name = os.fsdecode(os.fsencode(shop.folder) + b"/caf\xe9.db")
    shop.run("db", "backup", f"{shop.folder}/plain.db")
    shutil.copy(f"{shop.folder}/plain.db", f"{name}.copy")
    arguments, code = {
        "backup": (["backup", name], 78),
        "restore": (["restore", f"{name}.copy", "--yes", str(shop.database)], 78),
        "into": (["restore", f"{shop.folder}/plain.db", "--into", name], 2),
    }[command]
    assert "is not UTF-8" in shop.refused(code, "db", *arguments)
