"""Requests without a valid key: a bucket of the client's address, and who that client is behind proxies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.service import Shop, open_shop

LIMIT = 5


@pytest.fixture
async def few(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
    """A shop where an address may fail five times a minute, behind a proxy in 10.0.0.0/8."""
    async with open_shop(
        tmp_path, clock, address_per_minute=str(LIMIT), trusted_proxies="10.0.0.0/8,fd00::/8"
    ) as shop:
        yield shop


async def used_by(shop: Shop, client: str) -> int:
    """How many failures are counted for the address: OPTIONS is never refused, and adds none."""
    answer = await shop.call("OPTIONS", "/v1/pets", client=client)
    assert answer.status == 204
    return LIMIT - int(answer.headers["x-ratelimit-remaining"])


class TestBucket:
    """What is counted, and what happens past it."""

    async def test_600_a_minute_by_default(self, shop: Shop) -> None:
        """600 failures, then 429 with Retry-After until the bucket's reset."""
        opened = shop.clock.now_ms() // 1_000
        for left in range(599, -1, -1):
            answer = await shop.call("GET", "/v1/pets")
            assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (401, str(left))
        assert answer.headers["ratelimit-policy"] == '"address";q=600;w=60'
        assert answer.headers["ratelimit"] == '"address";r=0;t=60'
        shop.clock.ms += 12_500
        answer = await shop.call("GET", "/v1/pets")
        assert (answer.status, answer.code) == (429, "rate_limited")
        assert answer.headers["retry-after"] == "48"
        assert answer.headers["x-ratelimit-reset"] == str(opened + 60)
        shop.clock.set_seconds(opened + 60)
        answer = await shop.call("GET", "/v1/pets")
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (401, "599")

    async def test_every_kind_of_failure_counts(self, few: Shop) -> None:
        """Missing, malformed, unknown, expired and revoked keys, on any path, for HEAD as for GET."""
        key, key_id = await few.open_account("a")
        await few.store.keys.revoke(key_id, ACTOR)
        for method, value, path in (
            ("GET", None, "/v1/pets"),
            ("HEAD", "Basic x", "/v1/pets/1"),
            ("GET", "Bearer x", "/v1/none"),
            ("GET", f"Bearer {key}", "/v1"),
            ("GET", f"Bearer {key[:-1]}", "/v1/pets"),
        ):
            answer = await few.call(method, path, [("authorization", value)])
            assert answer.status == 401
        assert [(await few.call(method, "/v1/pets")).status for method in ("GET", "HEAD")] == [429, 429]

    async def test_a_valid_key_is_never_affected(self, few: Shop) -> None:
        """A request with a valid key is never refused or counted, however many fail from its address."""
        for _ in range(LIMIT + 5):
            assert (await few.ask("GET", "/v1/pets")).status == 200
        assert await used_by(few, "127.0.0.1") == 0
        for _ in range(LIMIT + 5):
            await few.call("GET", "/v1/pets")
        answer = await few.ask("GET", "/v1/pets")
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (200, "999989")
        assert await used_by(few, "127.0.0.1") == LIMIT


class TestProxies:
    """X-Forwarded-For is believed from trusted peers only, and from the right."""

    async def test_several_headers_are_one_chain(self, few: Shop) -> None:
        """Several X-Forwarded-For headers are one chain, in the order in which they stand."""
        headers = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", "10.2.3.4"),
        ]
        await few.call("GET", "/v1/pets", headers, client="10.0.0.1")
        assert await used_by(few, "198.51.100.1") == 1

    async def test_other_headers_are_not_read(self, few: Shop) -> None:
        """X-Forwarded-For is the only one."""
        others = ("forwarded", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip")
        await few.call("GET", "/v1/pets", [(name, "198.51.100.1") for name in others], client="10.0.0.1")
        assert await used_by(few, "10.0.0.1") == 1
