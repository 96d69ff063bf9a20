"""`petstore accounts`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli
from tests.support.postgres import fresh_database, run

NOW = "2027-01-15T08:00:30.000Z"


class TestAdd:
    @pytest.mark.parametrize(
        ("plan", "per_minute", "per_day"),
        [("free", 60, 1_000), ("pro", 300, 10_000), ("business", 1_000, 100_000)],
    )
    def test_standard_plans_bring_their_limits(
        self, cli: Cli, plan: str, per_minute: int, per_day: int
    ) -> None:
        """A standard plan has the specification's numbers."""
        assert cli.json("accounts", "add", "shop", "--plan", plan) == {
            "id": 1,
            "name": "shop",
            "plan": plan,
            "perMinute": per_minute,
            "perDay": per_day,
            "createdAt": NOW,
        }

    def test_enterprise_takes_the_agreed_numbers(self, cli: Cli) -> None:
        """The enterprise plan has the two numbers that were given."""
        added = cli.json(
            "accounts", "add", "zoo", "--plan", "enterprise", "--per-minute", "5000", "--per-day", "2000000"
        )
        assert (added["plan"], added["perMinute"], added["perDay"]) == ("enterprise", 5_000, 2_000_000)

    def test_makes_the_database_and_says_so(self, cli: Cli) -> None:
        """The first account may come before the first start; where its database is, is said."""
        result = cli.run("accounts", "add", "shop", "--plan", "free")
        assert result.exit_code == 0
        assert f"Making the database {cli.database}." in result.stderr
        assert "Making" not in cli.run("accounts", "add", "zoo", "--plan", "free").stderr

    def test_a_postgresql_database_is_made_by_what_may_make_one(self, cli: Cli) -> None:
        """As a file is: a command that only looks leaves the database of a mistyped address as it is."""
        with fresh_database() as url:
            cli.settings["PETSTORE_DATABASE_URL"] = url
            message = cli.refused(1, "accounts", "list")
            assert "There is no database postgresql://" in message
            assert "`petstore db migrate` makes one" in message
            assert run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
            assert "Making the database" in cli.run("accounts", "add", "shop", "--plan", "free").stderr
            assert [account["name"] for account in cli.json("accounts", "list")] == ["shop"]

    def test_says_what_to_do_next(self, cli: Cli) -> None:
        """A person is led on to the first key."""
        result = cli.run("accounts", "add", "shop", "--plan", "free")
        assert "plan     free: 60 a minute, 1,000 a day" in result.stdout
        assert "petstore keys issue shop" in result.stderr

    def test_taken_name_is_refused(self, shop: Cli) -> None:
        """Names are unique."""
        assert "already" in shop.refused(1, "accounts", "add", "shop", "--plan", "free")

    @pytest.mark.parametrize("name", ["12", "", "a b", "a/b", "ä", "x" * 65, "a\n"])
    def test_name_that_cannot_be_one_is_wrong_usage(self, cli: Cli, name: str) -> None:
        """What the core's check refuses never reaches the database, which is not even made."""
        assert "can't name an account" in cli.refused(2, "accounts", "add", name, "--plan", "free")
        assert not cli.database.exists()

    def test_plan_is_required(self, cli: Cli) -> None:
        """A forgotten plan is answered with the plans that there are."""
        line = cli.refused(2, "accounts", "add", "shop")
        assert "free, pro, business, enterprise. Try 'petstore accounts add --help'" in line

    def test_unknown_plan_is_wrong_usage(self, cli: Cli) -> None:
        """A plan that does not exist is answered with those that do."""
        assert "'enterprise'" in cli.refused(2, "accounts", "add", "shop", "--plan", "gold")

    @pytest.mark.parametrize("numbers", [[], ["--per-minute", "5"], ["--per-day", "5"]])
    def test_enterprise_without_both_numbers_is_wrong_usage(self, cli: Cli, numbers: list[str]) -> None:
        """Nothing is unlimited: both numbers have to be said."""
        line = cli.refused(2, "accounts", "add", "zoo", "--plan", "enterprise", *numbers)
        assert "needs both agreed numbers" in line

    def test_numbers_with_a_standard_plan_are_wrong_usage(self, cli: Cli) -> None:
        """A number that would have no effect is not dropped in silence."""
        assert "fixed limits" in cli.refused(2, "accounts", "add", "shop", "--plan", "pro", "--per-day", "5")

    @pytest.mark.parametrize(
        "number", ["0", "-1", "1.0", "1e3", "+5", "05", "1_0", "1000000001", "x", "\u0665"]
    )
    def test_number_that_is_none_is_wrong_usage(self, cli: Cli, number: str) -> None:
        """Numbers are plain whole numbers within the bounds."""
        line = cli.refused(
            2, "accounts", "add", "z", "--plan", "enterprise", "--per-day", "5", "--per-minute", number
        )
        assert "'--per-minute'" in line
        assert "from 1 to 1000000000" in line


class TestList:
    def test_in_the_order_of_ids(self, shop: Cli) -> None:
        """All accounts, the oldest first, with their limits."""
        shop.ok("accounts", "add", "bakery", "--plan", "free")
        assert [(account["id"], account["name"]) for account in shop.json("accounts", "list")] == [
            (1, "shop"),
            (2, "bakery"),
        ]
        lines = shop.ok("accounts", "list").splitlines()
        assert lines[0].split() == ["ID", "NAME", "PLAN", "PER", "MINUTE", "PER", "DAY", "CREATED"]
        assert lines[1].split() == ["1", "shop", "pro", "300", "10000", "2027-01-15", "08:00:30Z"]

    def test_none_yet(self, cli: Cli) -> None:
        """An empty list is no failure: a program gets [], a person the next step."""
        cli.ok("db", "migrate")
        assert cli.json("accounts", "list") == []
        result = cli.run("accounts", "list")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "petstore accounts add NAME" in result.stderr


class TestShow:
    @pytest.mark.parametrize("reference", ["shop", "1"])
    def test_by_name_or_id(self, shop: Cli, reference: str) -> None:
        """ACCOUNT is a name or an id."""
        assert shop.json("accounts", "show", reference)["name"] == "shop"
        assert "shop (id 1)" in shop.ok("accounts", "show", reference)

    @pytest.mark.parametrize("reference", ["nobody", "7", "0", "01x", "9" * 30])
    def test_unknown_is_refused(self, shop: Cli, reference: str) -> None:
        """What names no account says where to look."""
        assert "petstore accounts list" in shop.refused(1, "accounts", "show", reference)

    @pytest.mark.parametrize("reference", ["", "a\x1b[31m", "\udcff"])
    def test_what_can_be_no_reference_is_wrong_usage(self, shop: Cli, reference: str) -> None:
        """Bytes that are no text never reach the database or, unescaped, the terminal."""
        line = shop.refused(2, "accounts", "show", reference)
        assert "neither the name nor the id" in line
        assert "\x1b" not in line


class TestSetPlan:
    def test_gives_another_plan(self, shop: Cli) -> None:
        """The account has the new plan's limits from now on."""
        changed = shop.json("accounts", "set-plan", "shop", "--plan", "business")
        assert (changed["id"], changed["perMinute"]) == (1, 1_000)
        assert shop.json("accounts", "show", "1") == changed

    def test_unknown_account_is_refused(self, shop: Cli) -> None:
        """There is nobody to give a plan to."""
        shop.refused(1, "accounts", "set-plan", "nobody", "--plan", "free")

    def test_combination_is_checked(self, shop: Cli) -> None:
        """The same rule as for a new account."""
        shop.refused(2, "accounts", "set-plan", "shop", "--plan", "enterprise", "--per-day", "5")


@pytest.mark.parametrize(
    "command",
    [
        ["accounts", "list"],
        ["accounts", "show", "shop"],
        ["accounts", "set-plan", "shop", "--plan", "free"],
        ["keys", "issue", "shop"],
        ["keys", "list", "shop"],
        ["keys", "rotate", "1"],
        ["keys", "revoke", "1"],
        ["keys", "unban", "1"],
        ["pets", "list"],
        ["pets", "set-status", "1", "sold"],
        ["pets", "history", "1"],
        ["usage", "shop"],
        ["db", "check"],
        ["db", "backup", "copy.db"],
    ],
    ids=" ".join,
)
def test_without_a_database_nothing_is_made(
    cli: Cli, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs something that is there says that there is no database, and leaves none behind."""
    monkeypatch.chdir(cli.folder)
    assert f"There is no database {cli.database}" in cli.refused(1, *command)
    assert list(cli.folder.iterdir()) == []
