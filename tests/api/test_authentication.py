"""Keys in the life of the service: issued, rotated, revoked, expired; each acts on the next request (I14)."""

from __future__ import annotations

import asyncio

from petstore.core.keys import KEY_PATTERN
from tests.support.cases import every_case
from tests.support.journal import ACTOR
from tests.support.service import Shop, outsider, settle


async def status(shop: Shop, key: str) -> int:
    return (await shop.ask("GET", "/v1/pets", key=key)).status


class TestKeyLife:
    """What happens to a key acts on its next request."""

    async def test_a_revoked_key_is_refused_from_the_next_request_on(self, shop: Shop) -> None:
        """The request after the revocation is 401 and says so; other keys go on."""
        key, key_id = await shop.open_account("a")
        assert await status(shop, key) == 200
        await shop.store.keys.revoke(key_id, ACTOR)
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert "revoked" in answer.json()["message"]
        assert await status(shop, shop.key) == 200

    async def test_an_expired_key_is_refused_from_its_moment_on(self, shop: Shop) -> None:
        """A key works from the moment at which it was issued, in its published form: good until the last
        millisecond, 401 at the moment, and the message says so."""
        ends_ms = shop.clock.now_ms() + 10_000
        issued = await shop.store.keys.issue("tests", "test", ACTOR, expires_at_ms=ends_ms)
        assert KEY_PATTERN.fullmatch(issued.secret)
        assert await status(shop, issued.secret) == 200
        shop.clock.ms = ends_ms - 1
        assert await status(shop, issued.secret) == 200
        shop.clock.ms = ends_ms
        answer = await shop.ask("GET", "/v1/pets", key=issued.secret)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert "expired" in answer.json()["message"]

    async def test_revoked_after_it_was_let_in(self, shop: Shop) -> None:
        """A request that waits for its turn to write is carried out; the next one is refused."""
        key, key_id = await shop.open_account("a")
        with outsider(shop.path) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(shop.post({"name": "n", "categoryId": 1}, key=key))
            await settle()
            other.execute("UPDATE api_keys SET revoked_at_ms = 1 WHERE id = ?", (key_id,))
            other.execute("COMMIT")
        assert (await waiting).status == 201
        assert (await shop.post({"name": "n", "categoryId": 1}, key=key)).status == 401
        assert len(shop.pets()) == 1


@every_case(
    "value",
    ["Bearer {key}", "bearer {key}", "BEARER {key}", "bEaReR {key}", "Bearer   {key}", "Bearer {key} "],
)
async def test_the_scheme_is_case_insensitive(shop: Shop, value: str) -> None:
    """RFC 9110; and spaces around the key are not part of it."""
    answer = await shop.call("GET", "/v1/pets", [("authorization", value.replace("{key}", shop.key))])
    assert answer.status == 200, answer.headers
    assert "www-authenticate" not in answer.headers
