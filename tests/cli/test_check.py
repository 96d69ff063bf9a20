"""`petstore keys check`."""

from __future__ import annotations

import json

from petstore.core.keys import mint
from tests.cli.conftest import Cli
from tests.cli.test_keys import ban


class TestAccepted:
    def test_says_whose_it_is(self, shop: Cli) -> None:
        """Exit code 0 for a key that works (for 100 years at most), with or without the end of a line; a
        program gets the same."""
        key, _ = shop.issue("shop", "--expires", "36500d")
        for text in (key, f"{key}\r\n", f"  {key}  \n"):
            output = shop.ok("keys", "check", stdin=text)
            assert output.startswith("account  shop (id 1)\n")
            assert key not in output
        assert shop.json("keys", "check", stdin=key) == {
            "accepted": True,
            "reason": None,
            "keyId": 1,
            "state": "active",
            "access": "write",
            "accountId": 1,
            "account": "shop",
            "expiresAt": "2126-12-22T08:00:30.000Z",
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

    def test_a_banned_key_is_refused_for_as_long_as_the_ban_stands(self, shop: Cli) -> None:
        """The command says when it ends."""
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

    def test_what_is_no_key_of_this_database(self, shop: Cli) -> None:
        """A wrong form is told from a key of another database, and from a forgotten redirection. A program
        gets a document."""
        assert "unknown here" in shop.refused(1, "keys", "check", stdin=mint("live"))
        for text in ("x", "pets_live_" + "0" * 38, b"\xff\xfe", "a b", "k" * 5_000):
            assert "not a key" in shop.refused(1, "keys", "check", stdin=text)
        result = shop.run("keys", "check", "--json", stdin="x")
        assert (result.exit_code, result.stderr) == (1, "")
        assert json.loads(result.stdout)["accepted"] is False
        assert "petstore keys check < FILE" in shop.refused(2, "keys", "check", stdin="  \n")
