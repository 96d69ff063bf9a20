"""`petstore journal`, and what every command writes into it."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import pytest

from petstore.core.journal import JournalQuery
from tests.cli.conftest import Cli
from tests.cli.test_root import LEAVES
from tests.support.backends import execute_in_file
from tests.support.cases import every_case
from tests.support.journal import Audit

# Each line after the ones before: a command that changes something, and the types of its entries. What is
# repeated or refused writes none.
WALK: list[tuple[str, list[str]]] = [
    ("accounts add shop --plan free", ["account.added"]),
    ("accounts add shop --plan free", []),
    ("accounts set-plan shop --plan pro", ["account.plan_changed"]),
    ("accounts set-plan shop --plan pro", []),
    ("accounts suspend shop", ["account.suspended"]),
    ("accounts suspend shop", []),
    ("accounts resume shop", ["account.resumed"]),
    ("accounts resume shop", []),
    ("accounts rename shop store", ["account.renamed"]),
    ("accounts rename store store", []),
    ("keys issue store --label till", ["key.issued"]),
    ("keys issue nobody", []),
    ("keys rotate 1", ["key.issued", "key.rotated"]),
    ("keys unban 1", ["key.unbanned"]),
    ("keys revoke 1 --yes", ["key.revoked"]),
    ("keys revoke 1 --yes", []),
    ("keys rotate 1", []),
    ("accounts customer store --name Anna", ["account.customer_changed"]),
    ("accounts customer store --name Anna", []),
    ("accounts customer store", []),
    ("pets add Rex --category 1", ["pet.added"]),
    ("pets add Luna --category 1 --status sold", ["pet.added"]),
    ("pets set 1 --name Max --status pending", ["pet.changed"]),
    ("pets set 1 --name Max", []),
    ("pets set 2 --status pending", []),
    ("pets set 1 --status available", ["pet.changed"]),
    ("categories name 1 Dogs", ["category.named"]),
    ("categories name 1 Dogs", []),
    ("orders place 1 --account store", ["order.placed", "pet.changed"]),
    ("orders place 1 --account store", []),
    ("pets remove 1 --yes", []),
    ("orders comment 1 Friday", ["order.changed"]),
    ("orders comment 1 Friday", []),
    ("orders approve 1", ["order.approved"]),
    ("orders approve 1", []),
    ("orders cancel 1", ["order.cancelled", "pet.changed"]),
    ("orders place 1 --account store", ["order.placed", "pet.changed"]),
    ("orders approve 2", ["order.approved"]),
    ("orders deliver 2", ["order.delivered", "pet.changed"]),
    ("orders cancel 2", []),
    ("pets remove 2 --yes", ["pet.removed"]),
    ("pets remove 2 --yes", []),
    ("pets import {folder}/stock.csv --source-key sku --dry-run", []),
    ("pets import {folder}/stock.csv --source-key sku", ["pet.added", "pet.added"]),
    ("pets import {folder}/stock.csv --source-key sku", []),
    ("people add anna --role operator", ["person.added"]),
    ("people add anna --role viewer", []),
    ("people role anna staff", ["person.role_changed"]),
    ("people role anna staff", []),
    ("people disable anna --yes", ["person.disabled"]),
    ("people disable anna --yes", []),
    ("people enable anna", ["person.enabled"]),
    ("people enable anna", []),
    ("accounts contacts store eva@store.example --add", ["account.contact_added"]),
    ("accounts contacts store eva@store.example --add", []),
    ("accounts contacts store eva@store.example --off key.banned", ["account.contact_changed"]),
    ("accounts contacts store eva@store.example --off key.banned", []),
    ("accounts contacts store eva@store.example --remove", ["account.contact_removed"]),
    ("accounts contacts store eva@store.example --remove", []),
    ("accounts close store --yes", ["account.closed", "key.revoked"]),
    ("accounts close store --yes", []),
    ("accounts contacts store eva@store.example --add", []),
    ("people contacts anna anna@store.example --add", ["person.contact_added"]),
    ("people contacts anna anna@store.example", []),
    ("db migrate", []),
    ("db check", []),
    ("db backup {folder}/backup.db", []),
]
# These change nothing; in tests/cli/test_reads.py an animal, an order, a key, a webhook and so on are there.
READS = [
    *("accounts list", "accounts show shop", "accounts contacts shop", "accounts customer shop"),
    *("accounts contacts shop eva@shop.example", "people list", "people contacts anna"),
    *("keys list shop", "keys list --foreign", "keys show 1", "keys check", "bans", "limits check"),
    *("usage shop", "usage --deprecated", "usage --all --month 2027-01", "usage shop --month 2027-01 --csv"),
    *("pets list", "pets show 1", "pets export", "pets export --source-key sku", "categories list"),
    *("orders list", "orders show 1", "webhooks list", "webhooks show 1"),
    *("notifications kinds", "notifications list", "journal", "events", "events --after now"),
    *("config", "openapi", "completion bash", "db check", "db migrate --dry-run"),
]
# Tested in tests/cli/test_serve.py, tests/storage/sqlite/test_restore.py, tests/cli/test_events.py,
# tests/cli/test_db_copy.py, tests/storage/contract/test_people.py, tests/cli/test_webhooks.py and
# tests/cli/test_notifications.py.
ELSEWHERE = {"serve", "db restore", "db mark-restored", "db copy", "people reset"}
ELSEWHERE |= {"webhooks disable", "webhooks enable", "webhooks retry", "notifications test"}
ELSEWHERE |= {"staging refresh", "staging reset"}


def test_each_change_by_a_command_has_one_entry(cli: Cli, tmp_path: Path) -> None:
    """I22: all commands one after the other: entries for exactly what changed, each by the user."""
    (tmp_path / "stock.csv").write_text("name,categoryId,sku\nTom,1,A\nTim,2,B\n", encoding="utf-8")
    cli.ok("db", "migrate")
    audit = Audit(lambda sql: execute_in_file(Path(cli.database), sql))
    for line, expected in WALK:
        cli.run(*shlex.split(line.format(folder=tmp_path)))
        assert (line, audit.check()) == (line, expected)
    actors = {entry["actor"] for entry in cli.json("journal", "--limit", "1000")}
    assert actors == {cli.session().actor}


def test_the_walk_knows_every_command() -> None:
    """A new command is put into the walk, or among those that only read."""
    walked = {path for path in LEAVES if any(f"{line} ".startswith(f"{path} ") for line, _ in WALK)}
    read = {path for path in LEAVES if any(f"{line} ".startswith(f"{path} ") for line in READS)}
    assert set(LEAVES) == walked | read | ELSEWHERE
    assert (walked | read) & ELSEWHERE == set()


class TestShown:
    def test_a_line_says_who_what_and_from_what_to_what(self, shop: Cli) -> None:
        """What can't be printed is escaped, and the next page is named."""
        shop.ok("accounts", "set-plan", "shop", "--plan", "business")
        result = shop.run("journal", "--limit", "1")
        heading, line = result.stdout.splitlines()
        assert heading.split() == ["ID", "AT", "BY", "WHAT", "ABOUT", "CHANGE"]
        assert line.endswith(
            f"{shop.session().actor}  account.plan_changed  account:1"
            "  plan: pro -> business, perMinute: 300 -> 1000, perDay: 10000 -> 100000"
        )
        assert result.stderr == "There are more: add --before 2\n"
        (only,) = shop.json("journal", "--before", "2")
        assert (only["type"], only["before"]) == ("account.added", None)

    def test_a_search_goes_on_until_it_has_enough(self, shop: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """However few entries the store reads at once; and it says whether there are more."""
        monkeypatch.setattr("petstore.cli.journal.JournalQuery", partial(JournalQuery, scan_max=1))
        for turn in range(3):
            shop.ok("accounts", "set-plan", "shop", "--plan", ("business", "pro")[turn % 2])
        actor = shop.session().actor
        assert [entry["id"] for entry in shop.json("journal", "--actor", actor)] == [4, 3, 2, 1]
        assert "--before 3" in shop.run("journal", "--actor", actor, "--limit", "2").stderr

    @every_case(
        ("since", "found"),
        [
            ("1s", 1),
            ("2027-01-15", 1),
            ("2027-01-15T08:00:30Z", 1),
            ("2027-01-15T08:00:30.001Z", 0),
            ("2027-01-16", 0),
        ],
    )
    def test_since_takes_a_span_a_utc_day_or_a_moment(self, shop: Cli, since: str, found: int) -> None:
        """It takes the moment itself, too."""
        assert len(shop.json("journal", "--since", since)) == found
