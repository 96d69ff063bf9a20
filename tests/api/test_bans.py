"""Bans of keys that go on after many 429: when they begin, how long they last, what lifts them (I15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.service import Answer, Shop, open_shop, outsider


async def ask(shop: Shop, key: str) -> Answer:
    return await shop.ask("GET", "/v1/pets", key=key)


async def exhaust(shop: Shop, key: str) -> None:
    """Use up a minute of one request, meet the first 429, and let the grace pass."""
    assert (await ask(shop, key)).status == 200
    assert (await ask(shop, key)).code == "rate_limited"
    shop.clock.ms += 2_001


async def provoke(shop: Shop, key: str) -> Answer:
    """Go on until the ban begins: 60 counted refusals are forgiven, the next one is not."""
    await exhaust(shop, key)
    for _ in range(60):
        assert (await ask(shop, key)).code == "rate_limited"
    answer = await ask(shop, key)
    assert answer.code == "key_banned"
    return answer


@pytest.fixture
async def small(shop: Shop) -> tuple[str, int]:
    """A key whose account has one request a minute, and many a day."""
    return await shop.open_account("small", "enterprise", 1, 100_000)


class TestBegin:
    """When a ban begins."""

    async def test_after_more_than_sixty_counted(self, shop: Shop, small: tuple[str, int]) -> None:
        """The 61st counted refusal is the ban's first answer: 429 `key_banned` for a minute."""
        answer = await provoke(shop, small[0])
        assert answer.status == 429
        assert 60 <= int(answer.headers["retry-after"]) <= 61
        reset = int(answer.headers["x-ratelimit-reset"])
        assert reset * 1_000 - shop.clock.now_ms() <= 61_000
        assert answer.headers["ratelimit"].count("r=0;") == 2

    async def test_a_client_that_backs_off_is_served(self, shop: Shop, small: tuple[str, int]) -> None:
        """Pauses of 1, 2, 4, … seconds after each 429 lead back in, and never to a ban."""
        for _ in range(50):
            pause = 1
            while (answer := await ask(shop, small[0])).status == 429:
                assert answer.code == "rate_limited"
                shop.clock.advance(pause)
                pause *= 2
            assert answer.status == 200

    async def test_nobody_without_the_secret_can_cause_one(self, shop: Shop, small: tuple[str, int]) -> None:
        """Failed authentications are not refusals of the key."""
        await exhaust(shop, small[0])
        for _ in range(100):
            assert (await ask(shop, small[0][:-1] + "_")).status == 401
        assert (await ask(shop, small[0])).code == "rate_limited"

    async def test_the_numbers_are_settings(self, tmp_path: Path, clock: ManualClock) -> None:
        """Threshold, grace, window and ladder are the operator's."""
        settings = {
            "ban_minimum_rejections": "2",
            "ban_grace": "100ms",
            "ban_durations": "10s",
            "ban_window": "1m",
        }
        async with open_shop(tmp_path, clock, **settings) as shop:
            key, _ = await shop.open_account("a", "enterprise", 1, 99)
            answers = [(await ask(shop, key)).status, (await ask(shop, key)).code]
            clock.ms += 101
            answers += [(await ask(shop, key)).code for _ in range(3)]
            assert answers == [200, "rate_limited", "rate_limited", "rate_limited", "key_banned"]
            assert (await ask(shop, key)).headers["retry-after"] in ("10", "11")


async def test_it_survives_a_restart(shop: Shop, small: tuple[str, int]) -> None:
    """A ban keeps its end and its step on the ladder."""
    first = await provoke(shop, small[0])
    await shop.restart()
    again = await ask(shop, small[0])
    assert again.code == "key_banned"
    assert again.headers["x-ratelimit-reset"] == first.headers["x-ratelimit-reset"]
    shop.clock.set_seconds(int(first.headers["x-ratelimit-reset"]))
    second = await provoke(shop, small[0])
    assert 300 <= int(second.headers["retry-after"]) <= 301


class TestPardon:
    """The operator lifts a ban."""

    async def test_acts_on_the_next_request(self, shop: Shop, small: tuple[str, int]) -> None:
        """The key is as free as its account's limits let it be, and its record is clean."""
        await provoke(shop, small[0])
        shop.clock.ms += 1
        await shop.store.keys.pardon(small[1], ACTOR)
        assert (await ask(shop, small[0])).code == "rate_limited"
        shop.clock.advance(60)
        answer = await provoke(shop, small[0])
        assert 60 <= int(answer.headers["retry-after"]) <= 61

    async def test_while_the_service_is_down(self, shop: Shop, small: tuple[str, int]) -> None:
        """Another process's pardon between stop and start."""
        await provoke(shop, small[0])
        await shop.application.stop()
        shop.clock.advance(58)
        with outsider(shop.path) as connection:
            connection.execute(
                "UPDATE api_keys SET pardoned_at_ms = ? WHERE id = ?", (shop.clock.ms, small[1])
            )
        await shop.application.start()
        assert (await ask(shop, small[0])).status == 200
