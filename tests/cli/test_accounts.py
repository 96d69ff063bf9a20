"""`petstore accounts`. Its text is in sessions.txt, its refusals are in test_refusals.py."""

from __future__ import annotations

from tests.cli.conftest import Cli
from tests.support.postgres import fresh_database, run


def test_a_postgresql_database_is_made_by_what_may_make_one(cli: Cli) -> None:
    """As a file is: other commands leave the database of a mistyped address as it is."""
    with fresh_database() as url:
        cli.settings["PETSTORE_DATABASE_URL"] = url
        message = cli.refused(1, "accounts", "list")
        assert "There is no database postgresql://" in message
        assert "`petstore db migrate` makes one" in message
        assert run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
        cli.ok("db", "migrate")
        cli.ok("accounts", "add", "shop", "--plan", "free")
        assert [account["name"] for account in cli.json("accounts", "list")] == ["shop"]


class TestList:
    def test_none_yet(self, cli: Cli) -> None:
        """An empty list is no failure: a program gets [], a person the next step."""
        cli.ok("db", "migrate")
        assert cli.json("accounts", "list") == []
        result = cli.run("accounts", "list")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "petstore accounts add NAME" in result.stderr
