"""`petstore staging`: fills staging, and touches nothing else. What passes: storage/contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.postgres import fresh_database


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
    def test_from_production(self, staging: Cli, shop: Cli) -> None:
        """Animals and accounts come; production is as it was, and staging is stamped."""
        before = shop.database.read_bytes()
        told = staging.json("staging", "refresh", shop.settings["PETSTORE_DATABASE_URL"])
        assert (told["animals"], told["accounts"]) == (1, 1)
        assert staging.json("pets", "list")[0]["name"] == "Rex"
        assert shop.database.read_bytes() == before
        staging.settings["PETSTORE_STAGE"] = "production"
        assert "The database is of staging" in staging.refused(78, "pets", "list")

    def test_from_the_path_of_a_backup(self, staging: Cli, shop: Cli, tmp_path: Path) -> None:
        """As `db backup` was given it."""
        backup = tmp_path / "backup.db"
        shop.ok("db", "backup", str(backup))
        assert staging.json("staging", "refresh", str(backup))["animals"] == 1

    def test_into_a_server(self, staging: Cli, shop: Cli) -> None:
        """Staging on PostgreSQL, production in a file."""
        with fresh_database() as url:
            staging.settings["PETSTORE_DATABASE_URL"] = url
            staging.ok("db", "migrate")
            staging.ok("staging", "refresh", shop.settings["PETSTORE_DATABASE_URL"])
            assert staging.json("pets", "list")[0]["name"] == "Rex"

    def test_from_a_seed(self, staging: Cli) -> None:
        """As many animals as asked for."""
        assert staging.json("staging", "refresh", "--seed", "1", "--animals", "40")["animals"] == 40

    def test_reset(self, staging: Cli) -> None:
        """No animal is left; accounts and keys are."""
        staging.ok("accounts", "add", "own", "--plan", "free")
        key, _ = staging.issue("own")
        staging.ok("staging", "refresh", "--seed", "1")
        assert staging.ok("staging", "reset").endswith(
            "is empty. Accounts, keys, webhooks, contacts and people of staging stay.\n"
        )
        assert staging.json("pets", "list") == []
        assert staging.json("keys", "check", stdin=key)["accepted"]


class TestRefused:
    @pytest.mark.parametrize("stage", ["", "production"])
    def test_outside_staging(self, shop: Cli, stage: str) -> None:
        """With 78, before anything is read."""
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

    def test_production_by_mistake(self, shop: Cli) -> None:
        """PETSTORE_STAGE=staging with production's database, never stamped: its key gives it away."""
        shop.issue("shop")
        shop.ok("pets", "add", "Rex", "--category", "1")
        shop.settings["PETSTORE_STAGE"] = "staging"
        for words in (("staging", "reset"), ("pets", "remove", "1"), ("db", "migrate")):
            assert "has keys for production" in shop.refused(78, *words)
        shop.settings["PETSTORE_STAGE"] = ""
        assert shop.json("pets", "list")[0]["name"] == "Rex"
