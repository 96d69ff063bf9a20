"""`petstore accounts`. Its text is in sessions.txt, its refusals are in test_refusals.py."""

from __future__ import annotations

from tests.cli.conftest import Cli
from tests.support.postgres import fresh_database, run


def test_a_postgresql_database_is_made_by_what_may_make_one(cli: Cli) -> None:
    """Only a command that may make a file makes tables in a PostgreSQL database; others change nothing."""
    with fresh_database() as url:
        cli.settings["PETSTORE_DATABASE_URL"] = url
        message = cli.refused(1, "accounts", "list")
        assert "There is no database postgresql://" in message
        assert "`petstore db migrate` makes one" in message
        assert run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
        cli.ok("db", "migrate")
        assert "petstore accounts add NAME" in cli.run("accounts", "list").stderr
        cli.ok("accounts", "add", "shop", "--plan", "free")
        assert [account["name"] for account in cli.json("accounts", "list")] == ["shop"]
