"""Nothing kept is ever stale: any change is seen by the next request that starts after it (I5, I14)."""

from __future__ import annotations

import asyncio

from petstore.core.digests import digest
from petstore.core.keys import mint
from tests.support.service import Shop, outsider

TARGETS = ["/v1/pets", "/v1/pets?limit=100", "/v1/pets?status=available", "/v1/pets?id=1", "/v1/pets/1"]
ADD = "INSERT INTO pets (id, name, category_id, status) VALUES (NULL, ?, 1, 'available')"


async def names(shop: Shop, target: str) -> list[str]:
    """The names in an answer, of a list or of one animal."""
    answer = await shop.ask("GET", target)
    if answer.status == 404:
        return []
    document = answer.json()
    return [pet["name"] for pet in (document if isinstance(document, list) else [document])]


async def check(shop: Shop, *expected: str, is_sold: bool = False) -> None:
    """These names are in every answer, but in no list of available animals if they are sold."""
    for target in TARGETS:
        assert await names(shop, target) == ([] if is_sold and "status" in target else [*expected]), target


class TestPages:
    """Pages that are kept are dropped by any change of an animal."""

    async def test_our_own_writes(self, shop: Shop) -> None:
        """An animal whose 201 has come is in the next answer, as are its changes and its removal."""
        await check(shop)
        await shop.post({"name": "Rex", "categoryId": 1})
        await check(shop, "Rex")
        await shop.patch(1, {"name": "Rexi"})
        await check(shop, "Rexi")
        await shop.patch(1, {"status": "sold"})
        await check(shop, "Rexi", is_sold=True)
        await shop.ask("DELETE", "/v1/pets/1")
        await check(shop)

    async def test_insert_update_and_delete_by_somebody_else(self, shop: Shop) -> None:
        """Plain SQL of another connection, each statement seen by the very next request, warm or cold."""
        with outsider(shop.path) as other:
            for name in ("a", "b", "c"):
                await check(shop)
                await check(shop)
                other.execute(ADD.replace("NULL", "1"), (name,))
                await check(shop, name)
                other.execute("UPDATE pets SET name = 'changed' WHERE id = 1")
                await check(shop, "changed")
                other.execute("UPDATE pets SET status = 'sold' WHERE id = 1")
                await check(shop, "changed", is_sold=True)
                other.execute("DELETE FROM pets")

    async def test_a_transaction_is_seen_whole_and_only_after_its_commit(self, shop: Shop) -> None:
        """A transaction is seen whole after its commit; nothing is seen before it or after a rollback."""
        with outsider(shop.path) as other:
            other.execute("BEGIN IMMEDIATE")
            for name in ("a", "b"):
                other.execute(ADD, (name,))
                assert await names(shop, "/v1/pets") == []
            other.execute("COMMIT")
            assert await names(shop, "/v1/pets") == ["a", "b"]
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM pets")
            other.execute("ROLLBACK")
            assert await names(shop, "/v1/pets") == ["a", "b"]

    async def test_an_answer_that_is_kept_belongs_to_no_key(self, shop: Shop) -> None:
        """Headers are each request's own, the body is everybody's."""
        other, _ = await shop.open_account("other", "free")
        mine = await shop.ask("GET", "/v1/pets")
        theirs = await shop.ask("GET", "/v1/pets", key=other)
        assert mine.body == theirs.body
        assert theirs.headers["x-ratelimit-limit"] == "60"
        assert mine.headers["x-request-id"] != theirs.headers["x-request-id"]
        assert (await shop.call("GET", "/v1/pets")).status == 401


class TestKeys:
    """Callers that are kept are dropped by any change of an account or a key."""

    async def test_a_key_by_sql(self, shop: Shop) -> None:
        """Unknown until it is inserted, refused once it is revoked, back when not, gone with its row."""
        secret = mint("live")
        row = (digest(secret.encode()), "", "x")
        with outsider(shop.path) as other:
            for sql, bindings, status in (
                (
                    "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms)"
                    " VALUES (1, ?, ?, ?, 0)",
                    row,
                    200,
                ),
                ("UPDATE api_keys SET revoked_at_ms = 5 WHERE label = ''", (), 401),
                ("UPDATE api_keys SET revoked_at_ms = NULL WHERE digest = ?", row[:1], 200),
                ("UPDATE api_keys SET expires_at_ms = 5 WHERE digest = ?", row[:1], 401),
                ("UPDATE api_keys SET expires_at_ms = NULL WHERE digest = ?", row[:1], 200),
                ("DELETE FROM api_keys WHERE digest = ?", row[:1], 401),
            ):
                before = (await shop.ask("GET", "/v1/pets", key=secret)).status
                assert before in (200, 401)
                other.execute(sql, bindings)
                for _ in range(2):
                    assert (await shop.ask("GET", "/v1/pets", key=secret)).status == status

    async def test_a_revoked_key_stays_refused_when_others_are_used(self, shop: Shop) -> None:
        """The next request of all is one with a key that was never used before: what is kept from then on is
        of the time after the revocation, and the revoked key is not."""
        secret, key_id = await shop.open_account("a", "free")
        unused, _ = await shop.open_account("b", "free")
        for _ in range(3):
            assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 200
        with outsider(shop.path) as other:
            other.execute("UPDATE api_keys SET revoked_at_ms = 5 WHERE id = ?", (key_id,))
        for _ in range(3):
            assert (await shop.ask("GET", "/v1/pets", key=unused)).status == 200
        assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 401

    async def test_a_suspension_and_a_level_by_sql(self, shop: Shop) -> None:
        """Each acts on the next request, and ends with it."""
        key, key_id = await shop.open_account("a", "free")
        with outsider(shop.path) as other:
            for sql, statuses in (
                ("UPDATE accounts SET suspended_at_ms = 5 WHERE name = 'a'", [403, 403]),
                ("UPDATE accounts SET suspended_at_ms = NULL WHERE name = 'a'", [200, 415]),
                (f"UPDATE api_keys SET access = 'read' WHERE id = {key_id}", [200, 403]),
                (f"UPDATE api_keys SET access = 'manage' WHERE id = {key_id}", [200, 415]),
            ):
                other.execute(sql)
                for _ in range(2):
                    answers = [
                        (await shop.ask(method, "/v1/pets", key=key)).status for method in ("GET", "POST")
                    ]
                    assert answers == statuses


async def test_own_writes_and_walks_at_once(shop: Shop) -> None:
    """Writers and walkers in one service: what was acknowledged before a walk is in it once (I4)."""
    acknowledged: list[int] = []

    async def write(worker: int) -> None:
        for number in range(15):
            answer = await shop.post({"name": f"{worker}-{number}", "categoryId": number})
            acknowledged.append(answer.json()["id"])

    async def walk(limit: int) -> None:
        for _ in range(4):
            before = set(acknowledged)
            found: list[int] = []
            target: str | None = f"/v1/pets?limit={limit}"
            while target is not None:
                answer = await asyncio.create_task(shop.ask("GET", target))
                found += [pet["id"] for pet in answer.json()]
                target = answer.links.get("next")
            assert found == sorted(set(found))
            assert before <= set(found)

    await asyncio.gather(*(write(worker) for worker in range(6)), *(walk(limit) for limit in (1, 3, 7, 100)))
    assert sorted(acknowledged) == list(range(1, 91))
