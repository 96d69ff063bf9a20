"""Rate limits as a client sees them: two windows, two forms of headers, 429, what costs (I7, I10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.answers import LIMIT_HEADERS
from tests.support.journal import ACTOR
from tests.support.service import Answer, Shop

DAY = 86_400


def trio(answer: Answer) -> tuple[int, int, int]:
    """Limit, remaining and reset of the binding window."""
    limit, remaining, reset = (int(answer.headers[name]) for name in LIMIT_HEADERS)
    return limit, remaining, reset


def now(shop: Shop) -> int:
    return shop.clock.now_ms() // 1_000


async def take(shop: Shop, key: str, count: int = 1) -> Answer:
    """Send `count` requests and return the last answer."""
    for _ in range(count):
        answer = await shop.ask("GET", "/v1/pets", key=key)
    return answer


@pytest.mark.parametrize(
    ("plan", "per_minute", "per_day"), [(("free",), 60, 1_000), (("enterprise", 7, 11), 7, 11)]
)
async def test_each_plan_has_its_limits_in_both_forms_of_headers(
    shop: Shop, plan: Any, per_minute: int, per_day: int
) -> None:
    """The first request of an account, in both forms; a plan without a limit needs numbers too."""
    key, _ = await shop.open_account("a", *plan)
    answer = await take(shop, key)
    assert trio(answer) == (per_minute, per_minute - 1, now(shop) + 60)
    day_left = DAY - now(shop) % DAY
    assert answer.headers["ratelimit-policy"] == f'"minute";q={per_minute};w=60, "day";q={per_day};w=86400'
    assert (
        answer.headers["ratelimit"] == f'"minute";r={per_minute - 1};t=60, "day";r={per_day - 1};t={day_left}'
    )


class TestCosts:
    """What a request costs."""

    async def test_every_authenticated_answer_costs_one(self, shop: Shop) -> None:
        """Whatever its status, HEAD included."""
        key, _ = await shop.open_account("a", "free")
        headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
        answers = [
            await shop.call("POST", "/v1/pets", headers, b'{"name":"n","categoryId":1}'),
            await shop.call("POST", "/v1/pets", headers, b"{"),
            await shop.call("POST", "/v1/pets", headers[:1], b"{}"),
            await shop.call("POST", "/v1/pets", [*headers, ("content-length", "70000")], b""),
            await shop.ask("HEAD", "/v1/pets", key=key),
            await shop.ask("GET", "/v1/pets?limit=0", key=key),
            await shop.ask("GET", "/v1/none", key=key),
            await shop.ask("DELETE", "/v1/pets", key=key),
        ]
        assert [answer.status for answer in answers] == [201, 400, 415, 413, 200, 400, 404, 405]
        assert [trio(answer)[1] for answer in answers] == list(range(59, 51, -1))

    async def test_401_429_and_options_cost_nothing(self, shop: Shop) -> None:
        """A 401, a 429 and OPTIONS count neither for the minute's limit nor for the day's."""
        key, _ = await shop.open_account("a", "enterprise", 2, 4)
        await take(shop, key, 2)
        for _ in range(3):
            assert (await take(shop, key)).status == 429
        await shop.call("OPTIONS", "/v1/pets", [("authorization", f"Bearer {key}")])
        await shop.ask("GET", "/v1/pets", key=key + "x")
        shop.clock.advance(60)
        assert (await take(shop, key)).headers["ratelimit"].startswith('"minute";r=1;t=60, "day";r=1;')


class TestTooMany429:
    """Past a limit."""

    async def test_a_request_past_the_minute_is_refused_until_the_reset(self, shop: Shop) -> None:
        """60 are admitted, the 61st is not; at the second of the reset the next one is."""
        key, _ = await shop.open_account("a", "free")
        opened = now(shop)
        assert trio(await take(shop, key, 60)) == (60, 0, opened + 60)
        shop.clock.ms += 17_300
        answer = await take(shop, key)
        assert (answer.status, answer.code) == (429, "rate_limited")
        assert answer.headers["retry-after"] == "43"
        assert trio(answer) == (60, 0, opened + 60)
        assert (
            answer.json()["message"] == "The limit of 60 requests per minute is used up; try again in 43 s."
        )
        shop.clock.set_seconds(opened + 60)
        shop.clock.ms -= 1
        assert (await take(shop, key)).headers["retry-after"] == "1"
        shop.clock.ms += 1
        answer = await take(shop, key)
        assert (answer.status, trio(answer)) == (200, (60, 59, opened + 120))

    async def test_a_request_past_the_day_is_refused_until_midnight_utc(self, shop: Shop) -> None:
        """The UTC calendar day: refused until midnight, and told so."""
        key, _ = await shop.open_account("a", "enterprise", 100, 3)
        midnight = now(shop) - now(shop) % DAY + DAY
        await take(shop, key, 3)
        answer = await take(shop, key)
        assert (answer.status, trio(answer)) == (429, (3, 0, midnight))
        assert answer.headers["retry-after"] == str(midnight - now(shop))
        assert "3 requests per day" in answer.json()["message"]


async def test_an_upgrade_acts_at_once(shop: Shop) -> None:
    """A refused client goes on."""
    from petstore.core.limits.plans import PRO

    key, _ = await shop.open_account("a", "free")
    await take(shop, key, 60)
    assert (await take(shop, key)).status == 429
    await shop.store.accounts.set_plan("a", PRO, ACTOR)
    answer = await take(shop, key)
    assert (answer.status, trio(answer)[:2]) == (200, (300, 239))
