"""`petstore staging`: fills staging, and touches nothing else. What passes: storage/contract."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Cli
from tests.cli.test_reads import state
from tests.support.cases import every_case
from tests.support.postgres import fresh_database
from tests.support.rights import without_rights
from tests.support.schemas import knowing
from tools.servers import petstore


@pytest.fixture
def staging(shop: Cli, tmp_path: Path) -> Cli:
    """An empty database of staging beside production's, which has an animal and a key."""
    shop.settings["PETSTORE_STAGE"] = "production"
    shop.issue("shop")
    shop.ok("pets", "add", "Rex", "--category", "1")
    other = Cli(tmp_path, shop.clock)
    other.settings = {
        "PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/staging.db",
        "PETSTORE_STAGE": "staging",
    }
    other.ok("db", "migrate")
    return other


class TestRefresh:
    def test_staging_gets_productions_animals_and_accounts(self, staging: Cli, shop: Cli) -> None:
        """Animals and accounts come; production is as it was, and staging is stamped."""
        before = shop.database.read_bytes()
        told = staging.json("staging", "refresh", shop.settings["PETSTORE_DATABASE_URL"])
        assert (told["animals"], told["accounts"]) == (1, 1)
        assert staging.json("pets", "list")[0]["name"] == "Rex"
        assert shop.database.read_bytes() == before
        staging.settings["PETSTORE_STAGE"] = "production"
        assert "The database is of staging" in staging.refused(78, "pets", "list")

    def test_from_the_path_of_a_backup(self, staging: Cli, shop: Cli, tmp_path: Path) -> None:
        """The backup is named as for `db backup`; it stays as it was, and nothing is made beside it."""
        place = tmp_path / "backups"
        place.mkdir()
        shop.ok("db", "backup", f"{place}/backup.db")
        (place / "backup.db").chmod(0o444)
        before = state(place)
        assert staging.json("staging", "refresh", f"{place}/backup.db")["animals"] == 1
        assert state(place) == before

    def test_from_a_folder_that_is_only_read(self, staging: Cli, shop: Cli, tmp_path: Path) -> None:
        """A backup is; where a file has a write-ahead log, the error says what to name instead."""
        place = tmp_path / "backups"
        place.mkdir()
        shop.ok("db", "backup", f"{place}/backup.db")
        shutil.copy(shop.database, place / "copied.db")
        place.chmod(0o500)
        settings = {"database_url": staging.settings["PETSTORE_DATABASE_URL"], "stage": "staging"}
        found = [
            petstore.run(
                "staging", "refresh", place / name, "--yes", settings=settings, prefix=without_rights()
            )
            for name in ("backup.db", "copied.db")
        ]
        place.chmod(0o700)
        assert [(ended.returncode, ended.stderr) for ended in found] == [
            (0, ""),
            (
                78,
                f"petstore: SQLite can't read {place}/copied.db, since this user may not make files beside"
                " it. Name a copy that `petstore db backup` made.\n",
            ),
        ]

    def test_from_a_database_that_is_open(self, staging: Cli, shop: Cli) -> None:
        """The newest rows come, though they are in SQLite's log alone, and the log stays."""
        with closing(apsw.Connection(str(shop.database))) as server:
            server.execute("SELECT count(*) FROM pets").fetchall()
            shop.ok("pets", "add", "Mia", "--category", "1")
            paths = [Path(f"{shop.database}{suffix}") for suffix in ("", "-wal")]
            before = [path.read_bytes() for path in paths]
            assert staging.json("staging", "refresh", str(shop.database))["animals"] == 2
            assert [path.read_bytes() for path in paths] == before

    def test_into_a_server(self, staging: Cli, shop: Cli) -> None:
        """Staging on PostgreSQL, production in a file."""
        with fresh_database() as url:
            staging.settings["PETSTORE_DATABASE_URL"] = url
            staging.ok("db", "migrate")
            staging.ok("staging", "refresh", shop.settings["PETSTORE_DATABASE_URL"])
            assert staging.json("pets", "list")[0]["name"] == "Rex"

    def test_from_a_seed_and_reset(self, staging: Cli) -> None:
        """A seed gives the animals asked for; a reset leaves none, and keeps accounts and keys."""
        staging.ok("accounts", "add", "own", "--plan", "free")
        key, _ = staging.issue("own")
        assert staging.json("staging", "refresh", "--seed", "1", "--animals", "40")["animals"] == 40
        assert staging.ok("staging", "reset").endswith(
            "is empty. Accounts, keys, webhooks, contacts and people of staging stay.\n"
        )
        assert staging.json("pets", "list") == []
        assert staging.json("keys", "check", stdin=key)["accepted"]


class TestRefused:
    @every_case("stage", ["", "production"])
    def test_outside_staging_it_is_refused_with_78_before_anything_is_read(
        self, shop: Cli, stage: str
    ) -> None:
        """A rehearsal is never played to customers in production."""
        shop.ok("pets", "add", "Rex", "--category", "1")
        shop.settings["PETSTORE_STAGE"] = stage
        for words in (("refresh", "--seed", "1"), ("refresh", "sqlite:///x.db"), ("reset",)):
            assert "This is a command of staging" in shop.refused(78, "staging", *words)
        assert shop.json("pets", "list")[0]["name"] == "Rex"

    def test_a_source_that_is_none(self, staging: Cli, tmp_path: Path) -> None:
        """Staging itself under any address, a file that is not there, two sources, none."""
        own = staging.settings["PETSTORE_DATABASE_URL"]
        staging.ok("pets", "add", "Rex", "--category", "1")
        (tmp_path / "link.db").symlink_to("staging.db")
        (tmp_path / "hard.db").hardlink_to(tmp_path / "staging.db")
        for source in (own, f"sqlite:///{tmp_path}/link.db", f"sqlite:///{tmp_path}/hard.db"):
            assert "SOURCE is of staging" in staging.refused(78, "staging", "refresh", source)
        assert staging.json("pets", "list")[0]["name"] == "Rex"
        missing = f"sqlite:///{tmp_path}/none.db"
        assert "There is no database" in staging.refused(1, "staging", "refresh", missing)
        junk = tmp_path / "junk.db"
        junk.write_text("no database at all, but long enough to look at" * 50)
        told = staging.refused(1, "staging", "refresh", f"sqlite:///{junk}")
        assert told == f"petstore: {junk} is damaged; nothing was copied.\n"
        assert "SOURCE is not understood" in staging.refused(2, "staging", "refresh", "mysql://a/b")
        unreachable = f"postgresql://me@/pets?host={tmp_path}"
        assert "its address in SOURCE." in staging.refused(75, "staging", "refresh", unreachable)
        for words in ((), (own, "--seed", "1")):
            assert "Give either SOURCE or --seed." in staging.run("staging", "refresh", *words).stderr

    def test_a_source_that_this_program_cannot_read(
        self, staging: Cli, shop: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An older schema, and damage inside. It is the source that is named, and it stays as it is."""
        before = shop.database.read_bytes()
        with monkeypatch.context() as patch:
            knowing(patch)("CREATE TABLE later (id INTEGER PRIMARY KEY)")
            staging.ok("db", "migrate")
            told = staging.refused(78, "staging", "refresh", str(shop.database))
            assert told.startswith(f"petstore: {shop.database} was not read: the schema has version ")
        assert shop.database.read_bytes() == before
        with closing(apsw.Connection(str(shop.database))) as opened:
            root = opened.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'pets'").get
            size = opened.execute("PRAGMA page_size").get
        with shop.database.open("r+b") as file:
            file.seek((root - 1) * size)
            file.write(b"?" * size)
        told = staging.refused(1, "staging", "refresh", str(shop.database))
        assert told == f"petstore: {shop.database} is damaged; nothing was copied.\n"

    def test_production_by_mistake(self, shop: Cli) -> None:
        """PETSTORE_STAGE=staging with production's database, never stamped: its key gives it away."""
        shop.issue("shop")
        shop.ok("pets", "add", "Rex", "--category", "1")
        shop.settings["PETSTORE_STAGE"] = "staging"
        for words in (("staging", "reset"), ("pets", "remove", "1"), ("db", "migrate")):
            assert "has keys for production" in shop.refused(78, *words)
        shop.settings["PETSTORE_STAGE"] = ""
        assert shop.json("pets", "list")[0]["name"] == "Rex"
