"""`petstore keys` without `check`. Its text: sessions.txt; its refusals: test_refusals.py."""

from __future__ import annotations

from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import DailyUsage, UsageChanges
from tests.cli.conftest import Cli


def test_a_key_of_a_suspended_account_is_said_to_be_refused(shop: Cli) -> None:
    """A command says that a new key of a suspended account is refused, before the customer gets it."""
    assert "suspended" not in shop.run("keys", "issue", "shop").stderr
    assert "suspended" not in shop.run("keys", "rotate", "1").stderr
    shop.ok("accounts", "suspend", "shop")
    said = shop.run("keys", "issue", "shop").stderr
    assert "which is refused while the account is suspended. It is shown only now" in said
    said = shop.run("keys", "rotate", "2").stderr
    assert "the new one is refused while the account is suspended. It is shown only now" in said


def test_access_is_chosen_shown_and_kept(shop: Cli) -> None:
    """Lists and keys show each level; a successor has its predecessor's."""
    for access in ("read", "write", "manage"):
        key, key_id = shop.issue("shop", "--access", access)
        assert shop.json("keys", "check", stdin=key)["access"] == access
        shop.ok("keys", "rotate", str(key_id))
    assert [key["access"] for key in shop.json("keys", "list", "shop")] == [
        "read", "read", "write", "write", "manage", "manage",
    ]  # fmt: skip
    assert shop.issue("shop")[1] == 7
    assert shop.json("keys", "list", "shop")[6]["access"] == "write"


def test_says_the_state_and_the_times(shop: Cli) -> None:
    """Active, expired and revoked keys are told apart, and the last use is shown."""
    shop.issue("shop")
    shop.issue("shop", "--expires", "1h")
    shop.issue("shop")
    shop.ok("keys", "revoke", "3")
    used = UsageChanges({(1, 20_468): DailyUsage(20_468, 1)}, {1: shop.clock.now_ms() + 1_500})
    shop.with_store(lambda store: store.counters.save(LimiterState(), used))
    shop.clock.advance(3_600)
    listed = shop.json("keys", "list", "shop")
    assert [key["state"] for key in listed] == ["active", "expired", "revoked"]
    assert listed[0]["lastUsedAt"] == "2027-01-15T08:00:31.500Z"
    assert listed[1]["expiresAt"] == "2027-01-15T09:00:30.000Z"


class TestRotate:
    def test_expiry_is_inherited_and_told(self, shop: Cli) -> None:
        """The successor of a key for a trial ends with the trial."""
        shop.issue("shop", "--expires", "30d")
        told = shop.run("keys", "rotate", "1").stderr
        assert told.startswith(
            "Key 2 (expires 2027-02-14 08:00:30Z) replaces key 1, which works for 1d at most."
        )
        assert shop.json("keys", "list", "shop")[1]["expiresAt"] == "2027-02-14T08:00:30.000Z"

    def test_overlap_can_be_chosen(self, shop: Cli) -> None:
        """--overlap wins over the setting."""
        shop.issue("shop")
        shop.settings["PETSTORE_KEY_ROTATION_OVERLAP"] = "1h"
        shop.ok("keys", "rotate", "1", "--overlap", "7d")
        shop.ok("keys", "rotate", "2")
        first, second, _ = shop.json("keys", "list", "shop")
        assert first["expiresAt"] == "2027-01-22T08:00:30.000Z"
        assert second["expiresAt"] == "2027-01-15T09:00:30.000Z"

    def test_overlap_of_nothing_ends_the_old_key_at_once(self, shop: Cli) -> None:
        """It is for whom two working keys are too many."""
        shop.issue("shop")
        for key_id, overlap in (("1", "0"), ("2", "0s")):
            assert "works no longer" in shop.run("keys", "rotate", key_id, "--overlap", overlap).stderr
        assert [key["state"] for key in shop.json("keys", "list", "shop")] == ["expired", "expired", "active"]


def test_ban_that_a_server_writes_once_more_stays_lifted(shop: Cli) -> None:
    """A server that has not yet heard of the pardon writes the ban as of before: it is not reported."""
    shop.issue("shop")
    ban(shop, 1)
    shop.clock.advance(1)
    shop.ok("keys", "unban", "1")
    ban(shop, 1)
    assert shop.json("usage", "shop")["keys"][0]["bannedUntil"] is None


def ban(cli: Cli, key_id: int) -> None:
    """A ban of a minute from now on, as a server writes it."""
    now_ms = cli.clock.now_ms()
    ban = BanState(level=1, banned_from_ms=now_ms, banned_until_ms=now_ms + 60_000)
    state = LimiterState({}, {key_id: ban})
    cli.with_store(lambda store: store.counters.save(state, UsageChanges()))


class TestForeign:
    """`keys list --foreign`: whom PETSTORE_STAGE locks out, before it is set for the service."""

    def test_lists_them_with_their_accounts(self, shop: Cli) -> None:
        """The other stage's keys of all accounts are listed; `keys check` says why one is refused."""
        live, _ = shop.issue("shop")
        shop.settings["PETSTORE_ENVIRONMENT"] = "test"
        test, key_id = shop.issue("shop")
        del shop.settings["PETSTORE_ENVIRONMENT"]
        shop.settings["PETSTORE_STAGE"] = "production"
        (found,) = shop.json("keys", "list", "--foreign")
        assert (found["account"], found["id"], found["display"][:10]) == ("shop", key_id, "pets_test_")
        assert "ACCOUNT" in shop.ok("keys", "list", "--foreign")
        assert shop.json("keys", "check", stdin=live)["accepted"]
        refused = shop.refused(1, "keys", "check", stdin=test)
        fault = "it is for staging, but this service is production"
        assert refused == f"petstore: The key would be refused: {fault}.\n"

    def test_a_list_without_foreign_keys_says_so(self, shop: Cli) -> None:
        """There can be none without a stage."""
        assert "--foreign needs a stage" in shop.refused(78, "keys", "list", "--foreign")
        shop.settings["PETSTORE_STAGE"] = "production"
        shop.issue("shop")
        assert shop.run("keys", "list", "--foreign").stderr == "Production refuses no key.\n"
