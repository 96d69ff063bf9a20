"""Keys in the life of the service: issued, rotated, revoked, expired; each acts on the next request (I14)."""

from __future__ import annotations

import asyncio

from petstore.core.keys import KEY_PATTERN
from tests.api.checks import CheckedShop, outsider, settle

SECRET_FREE = "The API key is missing or invalid; send it as 'Authorization: Bearer <API_KEY>'."


async def status(shop: CheckedShop, key: str) -> int:
    return (await shop.ask("GET", "/v1/pets", key=key)).status


class TestKeyLife:
    """What happens to a key acts on its next request."""

    async def test_issued(self, shop: CheckedShop) -> None:
        """A key works from the moment at which it was issued, in its published form."""
        issued = await shop.store.keys.issue("tests", "live")
        assert KEY_PATTERN.fullmatch(issued.secret)
        assert await status(shop, issued.secret) == 200

    async def test_revoked(self, shop: CheckedShop) -> None:
        """The request after the revocation is 401 and says so; other keys go on."""
        key, key_id = await shop.open_account("a")
        assert await status(shop, key) == 200
        await shop.store.keys.revoke(key_id)
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert "revoked" in answer.json()["message"]
        assert await status(shop, shop.key) == 200

    async def test_revoked_by_somebody_else(self, shop: CheckedShop) -> None:
        """Another process's revocation acts just as quickly."""
        key, key_id = await shop.open_account("a")
        assert await status(shop, key) == 200
        with outsider(shop.path) as connection:
            connection.execute("UPDATE api_keys SET revoked_at_ms = 1 WHERE id = ?", (key_id,))
        assert await status(shop, key) == 401

    async def test_revoked_stays_revoked(self, shop: CheckedShop) -> None:
        """After a restart, and with the clock set back behind the revocation."""
        key, key_id = await shop.open_account("a")
        await shop.store.keys.revoke(key_id)
        await shop.restart()
        assert await status(shop, key) == 401
        shop.clock.advance(-3_600)
        assert await status(shop, key) == 401

    async def test_expired(self, shop: CheckedShop) -> None:
        """Good until the last millisecond, 401 at the moment, and the message says so."""
        ends_ms = shop.clock.now_ms() + 10_000
        issued = await shop.store.keys.issue("tests", "test", expires_at_ms=ends_ms)
        shop.clock.ms = ends_ms - 1
        assert await status(shop, issued.secret) == 200
        shop.clock.ms = ends_ms
        answer = await shop.ask("GET", "/v1/pets", key=issued.secret)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert "expired" in answer.json()["message"]

    async def test_rotated(self, shop: CheckedShop) -> None:
        """Both keys work during the overlap, the new one alone after it, on one account's limits."""
        key, key_id = await shop.open_account("a", "free")
        new = await shop.store.keys.rotate(key_id, "test", 60_000)
        first = await shop.ask("GET", "/v1/pets", key=key)
        second = await shop.ask("GET", "/v1/pets", key=new.secret)
        assert [a.headers["x-ratelimit-remaining"] for a in (first, second)] == ["59", "58"]
        shop.clock.advance(60)
        assert await status(shop, key) == 401
        assert await status(shop, new.secret) == 200

    async def test_deleted_by_somebody_else(self, shop: CheckedShop) -> None:
        """A key whose row is gone is unknown."""
        key, key_id = await shop.open_account("a")
        assert await status(shop, key) == 200
        with outsider(shop.path) as connection:
            connection.execute("DELETE FROM api_keys WHERE id = ?", (key_id,))
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert answer.json()["message"] == SECRET_FREE

    async def test_revoked_after_it_was_let_in(self, shop: CheckedShop) -> None:
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


class TestSecrecy:
    """A key's text is nowhere but in its owner's hands (I18)."""

    async def test_not_in_answers(self, shop: CheckedShop) -> None:
        """No response repeats the key, in the body or in a header."""
        for method, target in (
            ("GET", "/v1/pets"),
            ("PUT", "/v1/pets"),
            ("GET", "/v1/x"),
            ("GET", "/v1/pets?limit=0"),
        ):
            answer = await shop.ask(method, target)
            assert shop.key not in answer.body.decode() + str(answer.raw_headers)
