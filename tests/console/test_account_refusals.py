"""The page of an account says why its requests are refused now, and which ones were refused last."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from petstore.core.keys import Access
from petstore.core.limits.plans import FREE
from tests.api.test_bans import provoke
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop

NOTHING = "Nothing is refused now."


@pytest.fixture(autouse=True)
def saved_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `page` saves: a round that is under way would save what the page is about to show."""
    monkeypatch.setattr("petstore.ops.flusher.INTERVAL_SECONDS", 3_600)


async def page(shop: Shop, visitor: Visitor, account_id: int = 2) -> str:
    """The account's page, after what the service does by itself once a second."""
    await shop.application.service.flusher.save()
    return (await visitor.get(f"accounts/{account_id}")).text


def at(shop: Shop, seconds: int = 0) -> str:
    """The time of so many seconds from now, as pages have it."""
    return datetime.fromtimestamp(shop.clock.now_ms() // 1_000 + seconds, UTC).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )


async def test_a_minute_that_is_used_up(shop: Shop, viewer: Visitor) -> None:
    """Since when, until when; each refused request with its path's template, and what the day has in all.
    After the minute nothing is refused, and the list stays, also over a restart."""
    key, _ = await shop.open_account("zoo")
    began = at(shop)
    assert NOTHING in await page(shop, viewer)
    for _ in range(60):
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200
    assert "None in the last 30 days." in await page(shop, viewer)
    shop.clock.advance(20)
    await shop.ask("GET", "/v1/pets/7", key=key)
    await shop.ask("DELETE", "/v1/nowhere", key=key)
    text = await page(shop, viewer)
    assert (
        f"The 60 requests a minute of the plan free are used, counted since {began}: every request is"
        f" answered 429 until {at(shop, 40)}." in text
    )
    assert "Today (UTC): 62 requests, 2 of them answered 429." in text
    shown = (await shop.store.keys.get(2)).display
    rest = f"429 no request left in the minute 2 {shown} 127.0.0.1"
    assert f"{at(shop)} DELETE (no such path) {rest} {at(shop)} GET /v1/pets/{{petId}} {rest}" in text
    await shop.ask("GET", "/v1/pets", key=key)
    await shop.restart()
    shop.clock.advance(40)
    text = await page(shop, viewer)
    assert NOTHING in text
    assert f"GET /v1/pets {rest}" in text


async def test_a_ban_and_a_level(shop: Shop, viewer: Visitor) -> None:
    """The ban says since when and until when, beside the window. A level is a reason of one request only."""
    key, _ = await shop.open_account("zoo", "enterprise", 1, 100_000, Access.READ)
    shown = (await shop.store.keys.get(2)).display
    await shop.post({"name": "Rex", "categoryId": 1, "status": "available"}, key=key)
    assert f"POST /v1/pets 403 key's level too low 2 {shown}" in await page(shop, viewer)
    shop.clock.advance(60)
    await provoke(shop, key)
    text = await page(shop, viewer)
    ban = (await shop.store.usage.report(shop.clock.now_ms(), 2)).bans[0]
    seconds = -((shop.clock.now_ms() - ban.banned_until_ms) // 1_000)
    assert (
        f"Key 2 ({shown}) went on after many 429 answers and is banned since {at(shop)}: each of its"
        f" requests is answered 429 until {at(shop, seconds)}." in text
    )
    assert "The 1 request a minute of the plan enterprise are used, counted since" in text
    assert f"GET /v1/pets 429 key banned 2 {shown}" in text
    await shop.store.keys.pardon(2, ACTOR)
    assert "is banned" not in await page(shop, viewer)


async def test_what_people_did(shop: Shop, operator: Visitor) -> None:
    """Suspended by whom and since when, with its requests; then no key, and closed, which keeps none."""
    key, _ = await shop.open_account("zoo")
    await operator.fill("accounts/2/suspend", "/suspend")
    await shop.ask("GET", "/v1/pets", key=key)
    text = await page(shop, operator)
    assert f"Suspended by a-operator since {at(shop)}: every request is answered 403." in text
    assert "GET /v1/pets 403 account suspended 2" in text
    await operator.fill("accounts/2", "/resume")
    assert NOTHING in await page(shop, operator)
    second = (await shop.store.keys.issue("zoo", "live", ACTOR)).record
    await shop.store.keys.revoke(2, ACTOR)
    shown = (await shop.store.keys.get(2)).display
    gone = f"Key 2 ({shown}) is revoked since {at(shop)}: each of its requests is answered 401."
    assert gone in await page(shop, operator)
    assert (await shop.ask("GET", "/v1/pets", key=key)).status == 401
    shop.clock.advance(86_400)
    operator = await Visitor(shop).sign_in_as("operator", "late")
    assert NOTHING in await page(shop, operator)
    await shop.store.keys.revoke(second.id, ACTOR)
    text = await page(shop, operator)
    assert f"No key works (2 revoked) since {at(shop)}: every request is answered 401." in text
    assert text.count(" account suspended ") == 1
    await operator.fill("accounts/2/close", "/close")
    text = await page(shop, operator)
    assert f"Closed by late since {at(shop)}: its keys are revoked, and every request" in text
    assert "None in the last 30 days." in text


async def test_an_account_without_a_key(shop: Shop, viewer: Visitor) -> None:
    """It waits for its first one."""
    await shop.store.accounts.add("zoo", FREE, ACTOR)
    assert "It has no key yet: every request is answered 401." in await page(shop, viewer)
