"""A window of an hour, added by the recipe: it is published, counted and refused."""

from __future__ import annotations

from tests.support.service import Shop


async def test_the_hour_is_published(shop: Shop) -> None:
    """The limit of the hour is published in the RateLimit-Policy header and in /usage."""
    key, _ = await shop.open_account("a", "free")
    answer = await shop.ask("GET", "/v1/usage", key=key)
    assert '"hour";q=500;w=3600' in answer.headers["ratelimit-policy"]
    usage = answer.json()
    assert usage["perHour"] == 500
    assert usage["hour"]["used"] == 1


async def test_the_hour_refuses(shop: Shop) -> None:
    """The 501st request of an hour is refused until the hour ends, though no minute had more than 60."""
    key, _ = await shop.open_account("a", "free")
    statuses = []
    for number in range(501):
        if number % 60 == 0:
            shop.clock.advance(61)
        statuses.append((await shop.ask("GET", "/v1/pets", key=key)).status)
    assert statuses[-2:] == [200, 429]
    refused = await shop.ask("GET", "/v1/pets", key=key)
    assert int(refused.headers["retry-after"]) > 60
    shop.clock.advance(int(refused.headers["retry-after"]))
    assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200


async def test_the_hour_is_saved_and_loaded(shop: Shop) -> None:
    """Names of columns are used: a migration adds them after those of the day."""
    key, _ = await shop.open_account("a", "free")
    for _ in range(3):
        await shop.ask("GET", "/v1/pets", key=key)
    await shop.application.service.flusher.save()
    saved = await shop.store.counters.load(shop.clock.now_ms())
    account = (await shop.store.accounts.find("a")).id
    now_ms = shop.clock.now_ms()
    opened = (now_ms - now_ms % 1_000, now_ms - now_ms % 1_000, now_ms - now_ms % 86_400_000)
    assert saved.windows[account].openings.opened_ms == opened
    assert saved.windows[account].used == (3, 3, 3)
