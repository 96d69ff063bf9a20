"""`petstore webhooks`, and what `petstore keys revoke` does with those that a key has made."""

from __future__ import annotations

from typing import Any

import pytest

from petstore.core.events import EventQuery
from petstore.core.webhooks import Webhook, WebhookChange
from petstore.wiring.administration import Store
from tests.cli.conftest import Cli
from tests.support.failing_webhooks import URL, add_webhook, let_fail
from tests.support.journal import written

NOW = "2027-01-15T08:00:30.000Z"


@pytest.fixture
def hooks(shop: Cli) -> Cli:
    """The webhooks of `shop`: 1 and 2 by key 1, 3 by key 2; the first one fails."""
    shop.issue("shop")
    shop.issue("shop")

    async def make(store: Store) -> None:
        for key_id in (1, 1, 2):
            await add_webhook(store, key_id, description="mirror")
        await let_fail(store, 1, shop.clock.now_ms(), event_id=await event_id(store))

    shop.with_store(make)
    return shop


async def event_id(store: Store) -> str:
    """The identifier of an event that the account sees."""
    return (await store.events.page(EventQuery(1, 1))).events[0].id


def of(cli: Cli, webhook_id: int) -> Webhook:
    found: Webhook = cli.with_store(lambda store: store.webhooks.get(webhook_id))
    return found


def lines_of(cli: Cli, about: str) -> list[str]:
    found: list[str] = cli.with_store(lambda store: written(store, about))
    return found


class TestList:
    def test_of_all_or_of_one_account(self, hooks: Cli) -> None:
        """The list goes by id; standard error says how to go on."""
        assert [each["id"] for each in hooks.json("webhooks", "list")] == [1, 2, 3]
        result = hooks.run("webhooks", "list", "--account", "shop", "--limit", "2")
        heading, first, second = result.stdout.splitlines()
        assert " ".join(heading.split()) == "ID ACCOUNT URL STATE FAILING SINCE"
        assert first.split()[:4] == ["1", "shop", URL, "failing"]
        assert second.split() == ["2", "shop", URL, "active", "-"]
        assert result.stderr == "There are more: add --after 2\n"
        assert [each["id"] for each in hooks.json("webhooks", "list", "--after", "2")] == [3]
        hooks.ok("accounts", "add", "zoo", "--plan", "free")
        assert hooks.run("webhooks", "list", "--account", "zoo").stderr == "No webhooks match.\n"

    def test_those_that_fail(self, hooks: Cli) -> None:
        """`webhooks list --failing` shows a failing webhook until it is disabled."""
        assert [each["id"] for each in hooks.json("webhooks", "list", "--failing")] == [1]
        hooks.ok("webhooks", "disable", "1")
        assert hooks.json("webhooks", "list", "--failing") == []


def test_a_webhook_with_its_tries(hooks: Cli) -> None:
    """A webhook and its tries are shown as by the interface, with account and state; never a secret."""
    shown = hooks.json("webhooks", "show", "1")
    (tried,) = shown.pop("tries")
    assert shown == {
        "id": 1,
        "account": "shop",
        "url": URL,
        "types": ["*"],
        "description": "mirror",
        "enabled": True,
        "disabledReason": None,
        "failingSince": NOW,
        "keyId": 1,
        "createdAt": NOW,
        "state": "failing",
    }
    assert (tried["at"], tried["nextAt"], tried["status"]) == (NOW, "2027-01-15T08:00:35.000Z", 500)
    assert tried["answer"] == "Internal Server Error"
    text = hooks.ok("webhooks", "show", "1")
    assert "state          failing\nfailing since  2027-01-15 08:00:30Z\nkey            1\n" in text
    assert "got 500.  2027-01-15 08:00:35Z" in text
    assert "sealed" not in text
    assert hooks.run("webhooks", "show", "2").stderr == "\nNo tries are kept.\n"


class TestDisable:
    def test_by_the_operator(self, hooks: Cli) -> None:
        """The journal gets an entry; the second time changes nothing."""
        assert "state          disabled (operator)" in hooks.ok("webhooks", "disable", "2")
        assert hooks.json("webhooks", "disable", "2")["disabledReason"] == "operator"
        assert lines_of(hooks, "webhook:2") == ["webhook.added webhook:2", "webhook.disabled webhook:2"]


class TestEnable:
    def test_an_enabled_one_goes_on_where_it_stopped(self, hooks: Cli) -> None:
        """It begins anew: it fails no more."""
        hooks.ok("webhooks", "disable", "1")
        enabled = hooks.json("webhooks", "enable", "1")
        assert (enabled["state"], enabled["failingSince"]) == ("active", None)
        assert lines_of(hooks, "webhook:1")[1:] == ["webhook.disabled webhook:1", "webhook.enabled webhook:1"]

    @pytest.mark.parametrize("after", ["now", "bookmark"])
    def test_one_goes_on_from_another_place_if_told_so(self, hooks: Cli, after: str) -> None:
        """It holds for an enabled one too."""
        if after == "bookmark":
            after = hooks.run("events").stderr.split()[-1]
        hooks.ok("webhooks", "enable", "2", "--after", after)
        assert lines_of(hooks, "webhook:2")[1:] == ["webhook.moved webhook:2"]

    def test_from_a_place_that_is_gone(self, hooks: Cli) -> None:
        """It says what goes instead, and nothing is changed."""
        line = hooks.refused(1, "webhooks", "enable", "2", "--after", "0123456789ab-0-1")
        assert line.endswith(". Write --after now: earlier events are not sent then.\n")
        assert lines_of(hooks, "webhook:2") == ["webhook.added webhook:2"]


class TestRetry:
    def test_an_event_is_sent_again(self, hooks: Cli) -> None:
        """It is due at once; standard error says where to see the outcome."""
        (tried,) = hooks.json("webhooks", "show", "1")["tries"]
        result = hooks.run("webhooks", "retry", "1", tried["eventId"])
        assert result.stdout == f"webhook  1\nevent    {tried['eventId']}\n"
        assert result.stderr == "To see the outcome: petstore webhooks show 1\n"
        assert lines_of(hooks, "webhook:1")[1:] == ["webhook.redelivered webhook:1"]
        assert hooks.json("webhooks", "retry", "2", tried["eventId"]) == {
            "id": 2,
            "eventId": tried["eventId"],
        }

    def test_not_to_a_disabled_one(self, hooks: Cli) -> None:
        """A retry is refused for a disabled webhook, and for an event that does not exist."""
        assert "There is no event 'evt_1'" in hooks.refused(1, "webhooks", "retry", "2", "evt_1")
        hooks.ok("webhooks", "disable", "2")
        assert "Webhook 2 is disabled" in hooks.refused(1, "webhooks", "retry", "2", "evt_1")


class TestRevokedKeys:
    """`petstore keys revoke`."""

    def test_it_lists_what_the_key_has_made(self, hooks: Cli) -> None:
        """They go on; it says how to end them."""
        result = hooks.run("keys", "revoke", "1", "--yes")
        assert result.stderr == (
            f"It has made webhook 1 (failing): {URL}\nIt has made webhook 2 (active): {URL}\n"
            "To disable them, as for a leaked key: petstore keys revoke 1 --with-webhooks\n"
        )
        assert of(hooks, 2).disabled is None

    def test_with_webhooks_none_is_left(self, hooks: Cli) -> None:
        """The revocation of a key with its webhooks leaves none enabled; those of other keys go on."""
        assert "--with-webhooks" in hooks.run("keys", "revoke", "1").stderr
        hooks.with_store(lambda store: store.webhooks.change(1, WebhookChange(enabled=False), "cli:x"))
        result = hooks.run("keys", "revoke", "1", "--with-webhooks", "--json")
        assert result.stderr == ""
        made: list[dict[str, Any]] = hooks.json("keys", "revoke", "1", "--with-webhooks")["webhooks"]
        assert [(each["id"], each["disabledReason"]) for each in made] == [(1, "owner"), (2, "operator")]
        assert of(hooks, 3).disabled is None

    def test_revoking_a_key_shows_its_webhooks_before_it_asks(
        self, hooks: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who revokes it knows what ends with it."""
        monkeypatch.setattr("petstore.cli.keys.asks", lambda yes: not yes)
        asked = hooks.run("keys", "revoke", "2", stdin="n\n").stderr
        assert asked.startswith(f"It has made webhook 3 (active): {URL}\nKey 2 is ")
        assert of(hooks, 3).disabled is None
