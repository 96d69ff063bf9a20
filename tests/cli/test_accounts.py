"""`petstore accounts`. Its text is in sessions.txt, its refusals are in test_refusals.py."""

from __future__ import annotations

import pytest

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


def test_a_closing_tells_a_person_how_many_keys_it_ends(shop: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal. Anything but yes leaves the account open."""
    monkeypatch.setattr("petstore.cli.accounts.asks", lambda yes: not yes)
    for _ in range(2):
        shop.issue("shop")
    for answer, code, state in (("\n", 1, "active"), ("y\n", 0, "closed")):
        asked = shop.run("accounts", "close", "shop", stdin=answer)
        assert asked.exit_code == code
        assert "plan pro, active) has 2 active keys. Close it for good? [y/N]:" in asked.stderr
        assert ("Nothing was changed." in asked.stderr) == (code == 1)
        assert shop.json("accounts", "show", "shop")["state"] == state
