"""`petstore events`: what it prints, where it begins, and how one goes on. --follow: test_process.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from petstore.transactions import events as transactions
from tests.cli.conftest import Cli


def bookmark(stderr: str) -> str:
    """What a script takes: the last word."""
    return stderr.rsplit(maxsplit=1)[-1]


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def busy(shop: Cli) -> Cli:
    """Two accounts, an animal that was changed and ordered, and a key."""
    shop.ok("accounts", "add", "other", "--plan", "free")
    shop.ok("pets", "add", "Rex", "--category", "1")
    shop.ok("pets", "set", "1", "--name", "Max")
    shop.ok("orders", "place", "1", "--account", "shop")
    shop.ok("keys", "issue", "other")
    shop.ok("pets", "add", "Mia", "--category", "2")
    shop.ok("pets", "remove", "2", "--yes")
    return shop


class TestShown:
    def test_a_line_says_when_what_about_what_and_from_what_to_what(self, busy: Cli) -> None:
        """The oldest first; of an addition and a removal, all members."""
        shown = [line.split(maxsplit=4) for line in busy.ok("events").splitlines()]
        assert {tuple(line[:2]) for line in shown} == {("2027-01-15", "08:00:30Z")}
        assert [line[2:] for line in shown] == [
            ["pet.created", "1", "name: Rex, categoryId: 1, status: available"],
            ["pet.updated", "1", "name: Rex -> Max"],
            ["order.created", "1", "petId: 1, quantity: 1, status: placed, complete: false"],
            ["pet.updated", "1", "status: available -> pending"],
            ["key.issued", "1", "label: , access: write, expiresAt: -"],
            ["pet.created", "2", "name: Mia, categoryId: 2, status: available"],
            ["pet.deleted", "2", "name: Mia, categoryId: 2, status: available"],
        ]

    def test_each_event_is_a_line_of_json(self, busy: Cli) -> None:
        """Each event is a line of the interface's JSON, which a program reads before the command ends."""
        first, second, *_ = lines(busy.ok("events", "--json"))
        assert set(first) == {"id", "type", "timestamp", "data"}
        assert (second["type"], second["timestamp"]) == ("pet.updated", "2027-01-15T08:00:30.000Z")
        assert second["data"] == {"id": 1, "name": "Max", "previous": {"name": "Rex"}}

    def test_an_account_sees_its_own_and_what_is_shared(self, busy: Cli) -> None:
        """Orders and keys of others are not among them; types narrow it down."""
        busy.ok("orders", "cancel", "1")

        def types(*options: str) -> list[str]:
            return [each["type"] for each in lines(busy.ok("events", "--json", *options))]

        own = ("--type", "order.*", "--type", "key.issued")
        assert types(*own) == ["order.created", "key.issued", "order.updated"]
        assert types(*own, "--account", "shop") == ["order.created", "order.updated"]
        assert types(*own, "--account", "2") == ["key.issued"]
        assert "pet.created" in types("--account", "other")

    def test_the_newest_are_shown_and_a_bookmark_leads_on(
        self, busy: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Page by page each event once, however few entries the store reads at once; then only new ones."""
        everything = lines(busy.ok("events", "--json"))
        assert lines(busy.ok("events", "--limit", "2", "--json")) == everything[-2:]
        monkeypatch.setattr(transactions, "ENTRIES_SCANNED_MAX", 1)
        page = busy.run("events", "--limit", "7", "--json")
        assert lines(page.stdout) == everything
        begin = bookmark(page.stderr).rpartition("-")[0] + "-0"
        seen: list[Any] = []
        page = busy.run("events", "--after", begin, "--limit", "2", "--json")
        while page.stderr.startswith("There are more"):
            seen += lines(page.stdout)
            page = busy.run("events", "--after", bookmark(page.stderr), "--limit", "2", "--json")
        assert seen + lines(page.stdout) == everything
        now = busy.run("events", "--after", "now")
        assert (now.stdout, bookmark(now.stderr)) == ("", bookmark(page.stderr))
        busy.ok("pets", "add", "Bo", "--category", "1")
        (new,) = lines(busy.ok("events", "--after", bookmark(now.stderr), "--json"))
        assert new["data"]["name"] == "Bo"

    def test_an_empty_store_has_no_event_but_a_bookmark(self, empty: Cli) -> None:
        """A reader can begin before anything happens."""
        shown = empty.run("events")
        assert (shown.exit_code, shown.stdout) == (0, "")
        assert empty.run("events", "--after", bookmark(shown.stderr)).exit_code == 0

    def test_after_a_restore_no_bookmark_of_before_goes_on(self, busy: Cli) -> None:
        """The refusal says what to do, in the words of the command."""
        place = bookmark(busy.run("events").stderr)
        assert busy.ok("db", "mark-restored").endswith("bookmarks from before are refused.\n")
        refusal = busy.refused(1, "events", "--after", place)
        assert "before it was restored from a copy. Leave out --after" in refusal
        assert "--after now" in refusal
        assert busy.ok("events", "--limit", "1").split()[2:] == ["store.restored", "-"]
