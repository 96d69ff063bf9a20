"""Commands that only read change nothing: neither a database that is served, nor a backup."""

from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from petstore.cli.groups import EXIT_CONFIGURATION
from tests.cli.conftest import Cli
from tests.cli.test_journal import READS
from tests.support.failing_webhooks import add_webhook
from tests.support.rights import without_rights
from tools.servers import petstore


@pytest.fixture
def key(shop: Cli) -> str:
    """A key of `shop`."""
    return shop.issue("shop")[0]


@pytest.fixture
def backup(shop: Cli, key: str, tmp_path: Path) -> Path:
    """A backup alone in a folder, every user's to read, which the settings name."""
    shop.settings["PETSTORE_STAGE"] = "production"
    shop.ok("pets", "add", "Rex", "--category", "1")
    shop.ok("orders", "place", "1", "--account", "shop")
    shop.ok("people", "add", "anna", "--role", "operator")
    shop.ok("accounts", "contacts", "shop", "eva@shop.example", "--add")
    shop.with_store(lambda store: add_webhook(store, 1))
    file = tmp_path / "backups" / "backup.db"
    file.parent.mkdir()
    shop.ok("db", "backup", str(file))
    file.chmod(0o644)
    shop.settings["PETSTORE_DATABASE_URL"] = f"sqlite:///{file}"
    return file


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """The mode, the time of the last change and the content of each file."""
    return {
        file.name: (file.stat().st_mode, file.stat().st_mtime_ns, file.read_bytes())
        for file in folder.iterdir()
    }


def test_a_backup_stays_as_it_is(shop: Cli, key: str, backup: Path) -> None:
    """Whichever command looks into it; and nothing is made beside it."""
    before = state(backup.parent)
    for line in READS:
        shop.ok(*shlex.split(line), stdin=key)
        assert state(backup.parent) == before, line


def test_a_backup_that_may_only_be_read(shop: Cli, backup: Path) -> None:
    """A backup is read where it may not be written: on a read-only file system, or of another user."""
    backup.chmod(0o400)
    backup.parent.chmod(0o500)
    ended = petstore.run(
        "pets", "list", settings={"database_url": f"sqlite:///{backup}"}, prefix=without_rights()
    )
    backup.parent.chmod(0o700)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Rex" in ended.stdout


def test_the_newest_of_a_database_that_is_served(shop: Cli) -> None:
    """What is in its log alone is shown, and the log stays."""
    with closing(apsw.Connection(str(shop.database))) as server:
        server.execute("SELECT count(*) FROM pets").fetchall()
        shop.ok("pets", "add", "Mia", "--category", "1")
        log = Path(f"{shop.database}-wal")
        before = log.read_bytes()
        assert b"Mia" in before
        assert [pet["name"] for pet in shop.json("pets", "list")] == ["Mia"]
        assert log.read_bytes() == before


def test_a_database_that_is_not_served(shop: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The file's header says that it has a log: SQLite's files beside it go again. Another user of its group
    would own them, and the service could not start."""
    before = state(shop.database.parent)
    assert f"{shop.database.name}-wal" not in before
    for line in ("pets list", "db check", "db migrate"):
        shop.ok(*shlex.split(line))
        assert state(shop.database.parent) == before, line
    shop.ok("db", "backup", str(tmp_path_factory.mktemp("backups") / "backup.db"))
    assert state(shop.database.parent).keys() - before.keys() == {f"{shop.database.name}.last-backup"}


def test_the_service_stops_beside_a_reader(shop: Cli) -> None:
    """A reader is `petstore events --follow`: the file alone has all then, for who copies it."""
    with closing(apsw.Connection(str(shop.database), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        with shop.hold():
            assert reader.execute("SELECT count(*) FROM pets").get == 0
            shop.ok("pets", "add", "Mia", "--category", "1")
        assert Path(f"{shop.database}-wal").read_bytes() == b""
    assert b"Mia" in shop.database.read_bytes()


def test_what_a_killed_process_left(shop: Cli) -> None:
    """A log with something in it stays, and the file as well."""
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    write = f"import apsw; c = apsw.Connection({str(shop.database)!r}); c.execute('PRAGMA user_version = 1')"
    subprocess.run([sys.executable, "-c", f"{write}; {kill}"], check=False)
    before = {name: found for name, found in state(shop.database.parent).items() if "-shm" not in name}
    assert before[f"{shop.database.name}-wal"][2] != b""
    shop.ok("pets", "list")
    after = state(shop.database.parent)
    assert {name: after[name] for name in before} == before


def test_a_log_without_its_index_that_may_only_be_read(shop: Cli, backup: Path) -> None:
    """A copy of a file and its log: SQLite would have to make the index. Trying again does not help."""
    with closing(apsw.Connection(str(backup))) as server:
        server.execute("PRAGMA journal_mode = WAL; PRAGMA user_version = 1").fetchall()
        copy = backup.with_name("copy.db")
        for end in ("", "-wal"):
            Path(f"{copy}{end}").write_bytes(Path(f"{backup}{end}").read_bytes())
    copy.chmod(0o400)
    backup.parent.chmod(0o500)
    settings = {"database_url": f"sqlite:///{copy}"}
    ended = petstore.run("pets", "list", settings=settings, prefix=without_rights())
    backup.parent.chmod(0o700)
    assert (ended.returncode, ended.stdout) == (EXIT_CONFIGURATION, "")
    assert "Let this user write the file and its directory" in ended.stderr
