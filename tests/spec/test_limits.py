"""Specification, "Limits": the items, the plans and the five rules."""

from __future__ import annotations

import pytest

from petstore.core.errors import Invalid
from petstore.core.limits.plans import PRO, resolve_plan
from tests.api.checks import LIMIT_HEADERS, CheckedShop


async def check_plan(shop: CheckedShop, plan: str, per_minute: int, per_day: int) -> None:
    """An account on the plan gets both numbers, and not one request more in a minute."""
    key, _ = await shop.open_account("a", plan)
    answer = await shop.ask("GET", "/v1/pets", key=key)
    assert answer.headers["ratelimit-policy"] == f'"minute";q={per_minute};w=60, "day";q={per_day};w=86400'
    for _ in range(per_minute - 1):
        assert (await shop.ask("HEAD", "/v1/pets", key=key)).status == 200
    assert (await shop.ask("GET", "/v1/pets", key=key)).status == 429


class TestItems:
    """The table of items."""

    async def test_limit_parameter(self, shop: CheckedShop) -> None:
        """1 to 100, default 20."""
        for _ in range(21):
            await shop.post({"name": "Rex", "categoryId": 1})
        assert len((await shop.ask("GET", "/v1/pets")).json()) == 20
        for value, status in (("0", 400), ("1", 200), ("100", 200), ("101", 400)):
            assert (await shop.ask("GET", f"/v1/pets?limit={value}")).status == status


class TestPlans:
    """Rate limits by plan."""

    async def test_free(self, shop: CheckedShop) -> None:
        """60 a minute, 1,000 a day."""
        await check_plan(shop, "free", 60, 1_000)

    async def test_pro(self, shop: CheckedShop) -> None:
        """300 a minute, 10,000 a day."""
        await check_plan(shop, "pro", 300, 10_000)

    async def test_business(self, shop: CheckedShop) -> None:
        """1,000 a minute, 100,000 a day."""
        await check_plan(shop, "business", 1_000, 100_000)

    async def test_enterprise(self, shop: CheckedShop) -> None:
        """The two numbers that were agreed."""
        key, _ = await shop.open_account("a", "enterprise", 3, 5)
        answers = [await shop.ask("GET", "/v1/pets", key=key) for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        shop.clock.advance(60)
        answers = [await shop.ask("GET", "/v1/pets", key=key) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]


class TestRules:
    """The five rules."""

    async def test_1_every_response_carries_the_headers(self, shop: CheckedShop) -> None:
        """Whatever its status, with and without a key."""
        small, _ = await shop.open_account("a", "enterprise", 1, 9)
        await shop.ask("GET", "/v1/pets", key=small)
        answers = [
            await shop.ask("GET", "/v1/pets"),
            await shop.post({"name": "Rex", "categoryId": 1}),
            await shop.ask("OPTIONS", "/v1/pets"),
            await shop.post({}),
            await shop.call("GET", "/v1/pets"),
            await shop.ask("GET", "/v1/pets/99"),
            await shop.ask("PUT", "/v1/pets"),
            await shop.post(None, body=b" " * 70_000),
            await shop.call("POST", "/v1/pets", [("authorization", f"Bearer {shop.key}")], b"{}"),
            await shop.ask("GET", "/v1/pets", key=small),
            await shop.ask("GET", "/v1/pets", [("x", "x" * 17_000)]),
        ]
        statuses = [answer.status for answer in answers]
        assert statuses == [200, 201, 204, 400, 401, 404, 405, 413, 415, 429, 431]
        for answer in answers:
            for name in LIMIT_HEADERS:
                assert answer.headers[name].isdigit()

    async def test_2_reset_is_the_moment(self, shop: CheckedShop) -> None:
        """A second before it the limit stands, at it the limit is whole again."""
        key, _ = await shop.open_account("a", "enterprise", 1, 9)
        reset = int((await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-reset"])
        shop.clock.set_seconds(reset - 1)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 429
        shop.clock.set_seconds(reset)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200

    async def test_3_exceeding_is_429_with_retry_after(self, shop: CheckedShop) -> None:
        """A retry after that time is admitted, one a second earlier is not."""
        key, _ = await shop.open_account("a", "enterprise", 1, 9)
        await shop.ask("GET", "/v1/pets", key=key)
        shop.clock.advance(12.5)
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert answer.status == 429
        seconds = int(answer.headers["retry-after"])
        shop.clock.advance(seconds - 1)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 429
        shop.clock.advance(1)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200

    async def test_4_clients_that_back_off_are_served(self, shop: CheckedShop) -> None:
        """Pauses of 1, 2, 4, … seconds after each 429 lead back in, and never to a ban."""
        key, _ = await shop.open_account("a", "enterprise", 1, 1_000)
        for _ in range(50):
            pause = 1
            while (answer := await shop.ask("GET", "/v1/pets", key=key)).status == 429:
                assert answer.code == "rate_limited"
                shop.clock.advance(pause)
                pause *= 2
            assert answer.status == 200

    async def test_4_repeated_requests_cause_a_temporary_ban(self, shop: CheckedShop) -> None:
        """Of the key, for a time that the answer tells; then it works again."""
        key, _ = await shop.open_account("a", "enterprise", 1, 1_000)
        await shop.ask("GET", "/v1/pets", key=key)
        for _ in range(70):
            answer = await shop.ask("GET", "/v1/pets", key=key)
            shop.clock.advance(0.1)
        shop.clock.advance(-0.1)
        for _ in range(40):
            answer = await shop.ask("GET", "/v1/pets", key=key)
        assert (answer.status, answer.code) == (429, "key_banned")
        shop.clock.advance(int(answer.headers["retry-after"]))
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200

    async def test_5_higher_limits_come_with_a_plan_upgrade(self, shop: CheckedShop) -> None:
        """On the next request; what is used stays used."""
        key, _ = await shop.open_account("a", "free")
        for _ in range(61):
            answer = await shop.ask("GET", "/v1/pets", key=key)
        assert answer.status == 429
        await shop.store.keys.set_plan("a", PRO)
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (200, "239")

    def test_5_enterprise_quotas_are_agreed_individually(self) -> None:
        """Both numbers are given with the account, and only there."""
        assert resolve_plan("enterprise", 7, 8).per_day == 8
        for numbers in ((None, None), (7, None), (None, 8)):
            with pytest.raises(Invalid):
                resolve_plan("enterprise", *numbers)
        with pytest.raises(Invalid):
            resolve_plan("pro", 7, 8)
