"""What the log tells of bans and of a store that fails: a beginning, an end, and no flood between them."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from petstore.core.errors import StoreUnavailable
from tests.api.test_bans import provoke
from tests.support.journal import ACTOR
from tests.support.service import Shop


def look(shop: Shop) -> None:
    """What the service does by itself once a second."""
    shop.application.service.flusher._begin_round()


def names(events: list[Any]) -> list[str]:
    return [event["event"] for event in events]


@pytest.fixture
async def small(shop: Shop) -> tuple[str, int]:
    """A key whose account has one request a minute, and many a day."""
    return await shop.open_account("small", "enterprise", 1, 100_000)


class TestBans:
    """Whose key it is, and how the ban ended."""

    async def test_a_ban_that_ends_by_time(self, shop: Shop, small: tuple[str, int]) -> None:
        """One event when it begins, whatever the client does then, and one when the time is over."""
        key, key_id = small
        with capture_logs() as events:
            await provoke(shop, key)
            for _ in range(5):
                await shop.ask("GET", "/v1/pets", key=key)
            look(shop)
            assert names(events) == ["ban began"]
            shop.clock.advance(62)
            look(shop)
            look(shop)
        assert names(events) == ["ban began", "ban ended"]
        assert events[0]["key"] == events[1]["key"] == key_id
        assert events[0]["account"] == events[1]["account"] == 2
        assert (events[0]["seconds"], events[1]["by"]) == (61, "time")

    async def test_a_banned_key_that_is_revoked_is_not_pardoned(
        self, shop: Shop, small: tuple[str, int]
    ) -> None:
        """The 401 of such a key is not an end of the ban."""
        key, key_id = small
        with capture_logs() as events:
            await provoke(shop, key)
            await shop.store.keys.revoke(key_id, ACTOR)
            assert (await shop.ask("GET", "/v1/pets", key=key)).status == 401
        assert names(events) == ["ban began"]

    async def test_a_ban_that_is_lifted(self, shop: Shop, small: tuple[str, int]) -> None:
        """The next request of the key tells; the end of the time tells nothing more."""
        key, key_id = small
        with capture_logs() as events:
            await provoke(shop, key)
            await shop.store.keys.pardon(key_id, ACTOR)
            await shop.ask("GET", "/v1/pets", key=key)
            shop.clock.advance(62)
            look(shop)
        assert [(event["event"], event.get("by")) for event in events] == [
            ("ban began", None),
            ("ban ended", "pardon"),
        ]


async def test_one_line_a_second_with_the_number_left_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first failure at once; of 100 in the second after it one line, which counts the others; then
    the end, once, after ten seconds without a failure of any kind."""
    reasons = iter(["gone"] * 101 + ["slow"])

    async def fail(*_: object) -> NoReturn:
        raise StoreUnavailable(next(reasons))

    monkeypatch.setattr(shop.store.pets, "look_up", fail)
    with capture_logs() as events:
        for _ in range(101):
            assert (await shop.ask("GET", "/v1/pets/1")).status == 503
            look(shop)
        assert [event["left_out"] for event in events] == [0]
        shop.clock.advance(1)
        look(shop)
        assert [event["left_out"] for event in events] == [0, 99]
        await shop.ask("GET", "/v1/pets/1")  # another reason is told at once
        assert [event["reason"] for event in events[1:]] == [events[0]["reason"], events[2]["reason"]]
        assert events[2]["reason"] != events[0]["reason"]
        assert events[2]["left_out"] == 0
        shop.clock.advance(9.9)
        look(shop)
        assert len(events) == 3  # the first reason is gone for longer, the outage is not
        shop.clock.advance(0.1)
        look(shop)
        look(shop)
    assert names(events[3:]) == ["store available again"]
    assert events[3]["seconds"] == 1.0
    assert {event["operation"] for event in events[:3]} == {"getPet"}
    assert all(event["request_id"] for event in events[:3])
