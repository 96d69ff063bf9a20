"""403 of suspended accounts. Which operation needs which level: refusals.py has those above a key's level,
test_walks.py those within."""

from __future__ import annotations

from tests.support.journal import ACTOR
from tests.support.service import Shop

SOME = ("GET", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/nothing"), ("PUT", "/v1/pets")


class TestSuspension:
    """403 `account_suspended`: before the limits, for nothing, until the account is resumed."""

    async def test_every_answer_until_it_is_resumed(self, shop: Shop) -> None:
        """All keys of the account, whatever they ask; OPTIONS as for everybody. Other accounts go on."""
        key, _ = await shop.open_account("shop")
        second = (await shop.store.keys.issue("shop", "test", ACTOR)).secret
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200
        await shop.store.accounts.suspend("shop", ACTOR)
        for method, path in SOME:
            for secret in (key, second):
                answer = await shop.ask(method, path, key=secret)
                assert (answer.status, answer.code) == (403, "account_suspended")
                assert "ask the operator" in answer.json()["message"]
        assert (await shop.ask("OPTIONS", "/v1/pets", key=key)).status == 204
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        await shop.store.accounts.resume("shop", ACTOR)
        assert (await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-remaining"] == "58"

    async def test_a_revoked_key_stays_401(self, shop: Shop) -> None:
        """What is wrong with the key is told before what is wrong with its account."""
        key, key_id = await shop.open_account("shop")
        await shop.store.accounts.suspend("shop", ACTOR)
        await shop.store.keys.revoke(key_id, ACTOR)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 401
