"""`petstore keys check`."""

from __future__ import annotations

import json

import pytest

from petstore.core.keys import mint
from tests.cli.conftest import Cli
from tests.cli.test_keys import ban


class TestAccepted:
    @pytest.mark.parametrize("form", ["{}", "{}\n", "{}\r\n", "  {}  \n"])
    def test_says_whose_it_is(self, shop: Cli, form: str) -> None:
        """Exit code 0 for a key that works, with or without the end of a line."""
        key, _ = shop.issue("shop", "--label", "web")
        output = shop.ok("keys", "check", stdin=form.format(key))
        assert output.startswith("account  shop (id 1)\n")
        assert key not in output

    def test_json(self, shop: Cli) -> None:
        """A program gets the same."""
        key, _ = shop.issue("shop", "--expires", "1d")
        assert shop.json("keys", "check", stdin=key) == {
            "accepted": True,
            "reason": None,
            "keyId": 1,
            "state": "active",
            "access": "write",
            "accountId": 1,
            "account": "shop",
            "expiresAt": "2027-01-16T08:00:30.000Z",
            "bannedUntil": None,
        }


class TestRefused:
    def test_revoked_and_expired(self, shop: Cli) -> None:
        """Exit code 1, with everything that is known of the key."""
        revoked, _ = shop.issue("shop")
        expired, _ = shop.issue("shop", "--expires", "1s")
        shop.ok("keys", "revoke", "1")
        shop.clock.advance(1)
        for key, state in ((revoked, "revoked"), (expired, "expired")):
            result = shop.run("keys", "check", stdin=key)
            assert result.exit_code == 1
            assert f"state    {state}" in result.stdout
            assert result.stderr == f"petstore: The key would be refused: {state}.\n"

    def test_banned(self, shop: Cli) -> None:
        """A ban counts as refused for as long as it stands."""
        key, _ = shop.issue("shop")
        ban(shop, 1)
        result = shop.run("keys", "check", "--json", stdin=key)
        assert result.exit_code == 1
        found = json.loads(result.stdout)
        assert (found["accepted"], found["state"]) == (False, "active")
        assert found["reason"] == "banned until 2027-01-15 08:01:30Z"
        assert found["bannedUntil"] == "2027-01-15T08:01:30.000Z"
        assert "ban      until 2027-01-15 08:01:30Z" in shop.run("keys", "check", stdin=key).stdout
        shop.clock.advance(60)
        shop.ok("keys", "check", stdin=key)

    def test_unknown(self, shop: Cli) -> None:
        """A key of another database is told from one with a typing error."""
        assert "unknown here" in shop.refused(1, "keys", "check", stdin=mint("live"))

    @pytest.mark.parametrize("text", ["x", "pets_live_" + "0" * 38, b"\xff\xfe", "a b", "k" * 5_000])
    def test_what_is_no_key(self, shop: Cli, text: str | bytes) -> None:
        """A wrong form or checksum is found without the database."""
        assert "not a key" in shop.refused(1, "keys", "check", stdin=text)

    def test_json_of_what_is_no_key(self, shop: Cli) -> None:
        """A program gets a document even then."""
        result = shop.run("keys", "check", "--json", stdin="x")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["accepted"] is False
        assert result.stderr == ""

    @pytest.mark.parametrize("text", ["", "\n", "  \n"])
    def test_nothing_on_standard_input_is_wrong_usage(self, shop: Cli, text: str) -> None:
        """A forgotten redirection is told from a bad key."""
        assert "petstore keys check < FILE" in shop.refused(2, "keys", "check", stdin=text)
