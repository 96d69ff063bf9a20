"""How a wait for events ends: as the key, its limits and its client are at that moment; and what is noted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from petstore.core.limits.plans import FREE
from petstore.core.staging import Content
from petstore.http.exchange import Exchange
from tests.api.test_events import LONG, after, begin, now, store_of_each, types_of
from tests.api.world import EVENTS
from tests.ops.test_access_log import Log, log
from tests.ops.test_metrics import scrape
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database
from tests.support.service import Answer, Shop, open_shop
from tests.support.valkey import emptied_url
from tests.support.waiting import until

__all__ = ["log", "store_of_each"]


async def ban(shop: Shop, key: str) -> None:
    """Go on after many 429."""
    answer = await shop.ask("GET", "/v1/pets", key=key)
    while answer.status != 429 or answer.code != "key_banned":
        shop.clock.advance(0.1)
        answer = await shop.ask("GET", "/v1/pets", key=key)


async def used(shop: Shop, key: str) -> int:
    """Requests of this minute, with this one."""
    return int((await shop.ask("GET", "/v1/usage", key=key)).json()["minute"]["used"])


class TestKeys:
    """The key as it is at the end."""

    async def test_one_that_is_good_no_more_gets_no_event(self, store_of_each: Shop) -> None:
        """A key that is revoked, expired, or of a suspended account during its wait is refused: no event."""
        shop = store_of_each
        revoked, key_id = await shop.open_account("leaked", "free")
        suspended, _ = await shop.open_account("late", "free")
        await shop.store.accounts.add("a", FREE, ACTOR)
        issued = await shop.store.keys.issue("a", "test", ACTOR, expires_at_ms=shop.clock.now_ms() + 1_000)
        start = f"{await now(shop)}&{LONG}"
        waiting = [await begin(shop, start, key) for key in (revoked, suspended, issued.secret)]
        shop.clock.advance(1)  # before the first commit: that may end a wait at once
        await shop.store.keys.revoke(key_id, ACTOR)
        await shop.store.accounts.suspend("late", ACTOR)
        await shop.post({"name": "Rex", "categoryId": 1})
        answers = [await each for each in waiting]
        assert [(answer.status, answer.code) for answer in answers] == [
            (401, "unauthorized"), (403, "account_suspended"), (401, "unauthorized"),
        ]  # fmt: skip
        assert "expired" in answers[2].json()["message"]

    async def test_one_that_is_banned_meanwhile_gets_no_event(self, store_of_each: Shop) -> None:
        """Unless the operator has lifted the ban before the end."""
        shop = store_of_each
        keys = [await shop.open_account(name, "enterprise", 1, 1_000) for name in ("a", "b")]
        start = f"{await now(shop, '&type=pet.*')}&{LONG}"
        waiting = [await begin(shop, start, key) for key, _ in keys]
        for key, _ in keys:
            await ban(shop, key)
        await shop.store.keys.pardon(keys[1][1], ACTOR)
        await shop.post({"name": "Rex", "categoryId": 1})
        refused, answered = [await each for each in waiting]
        assert (refused.status, refused.code) == (429, "key_banned")
        assert types_of(answered) == ["pet.created"]

    async def test_a_used_up_minute_is_no_reason(self, store_of_each: Shop) -> None:
        """The wait has paid already. Nothing is taken twice: /usage counts each request once."""
        shop = store_of_each
        start = f"{await now(shop)}&{LONG}"
        small, _ = await shop.open_account("small", "enterprise", 1, 1_000)
        large, _ = await shop.open_account("large", "enterprise", 1_000, 1_000)
        waiting = [await begin(shop, f"{start}&type=pet.*", key) for key in (small, large)]
        assert (await shop.ask("GET", "/v1/pets", key=small)).status == 429
        assert await used(shop, large) == 2
        await shop.post({"name": "Rex", "categoryId": 1})
        answers = [await each for each in waiting]
        assert [types_of(answer) for answer in answers] == [["pet.created"]] * 2
        assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["0", "998"]
        assert await used(shop, large) == 3


@pytest.mark.parametrize("restored", [False, True])
async def test_other_data_end_a_wait(store_of_each: Shop, restored: bool) -> None:
    """410 at once, with what to do: the bookmark is of what the store had before a restore or other data, and
    no event would follow it."""
    store = store_of_each.store
    waiting = await begin(store_of_each, f"{await now(store_of_each)}&{LONG}")
    await (store.events.note_restore(ACTOR) if restored else store.staging.fill(Content(), ACTOR))
    answer = await waiting
    assert (answer.status, answer.code) == (410, "events_gone")
    assert "after=now" in answer.json()["message"]


async def test_a_commit_that_wakes_many_leaves_the_store_to_others(tmp_path: Path) -> None:
    """More than may wait for a connection: each gets its event, also after a change of keys."""
    with fresh_database(migrated=True) as url:
        small: dict[str, Any] = {"database_pool": "1", "write_queue": "8"}
        async with open_shop(
            tmp_path, database_url=url, valkey_url=emptied_url(), replicas="1", **small
        ) as shop:
            key, _ = await shop.open_account("large", "enterprise", 1_000, 1_000)
            start = f"{await now(shop, '&type=pet.*')}&{LONG}"
            waiting = [await begin(shop, start, key) for _ in range(40)]
            await shop.open_account("other", "free")
            await shop.post({"name": "Rex", "categoryId": 1})
            assert [types_of(await each) for each in waiting] == [["pet.created"]] * 40


class TestClients:
    """A client that leaves and a service that stops leave nothing of a wait behind."""

    async def test_a_client_that_goes_leaves_nothing(self, shop: Shop) -> None:
        """The slot of a client that goes is free at once, and no task goes on."""
        free, _ = await shop.open_account("free", "free")
        before = asyncio.all_tasks()
        waits = shop.application.service.waits
        start = f"{await now(shop)}&{LONG}"

        async def go(exchange: Exchange) -> None:
            exchange.complete()
            await until(lambda: len(waits) == 1)
            exchange.client_left()

        for _ in range(3):
            answer = await shop.call("GET", start, [("authorization", f"Bearer {free}")], go)
            assert "retry-after" not in answer.headers
            assert len(waits) == 0
        await until(lambda: asyncio.all_tasks() == before)

    async def test_a_stop_leaves_no_poll_of_the_store_that_is_closed_next(self, shop: Shop) -> None:
        """A poll that is late would fail, and be logged as a fault."""
        waiting = await begin(shop, f"{await now(shop)}&{LONG}")
        await shop.application.service.waits.close()
        assert [task for task in asyncio.all_tasks() if "keep_polling" in repr(task.get_coro())] == []
        assert (await waiting).json() == []


@pytest.mark.parametrize("restored", [False, True])
async def test_a_wait_is_logged_and_is_no_latency(log: Log, restored: bool) -> None:
    """A wait's line in the access log has its whole duration, the histogram only the work; where it ends in
    an error too."""
    async with log.shop() as shop:
        waiting = await begin(shop, f"{await now(shop)}&{LONG}")
        assert (await scrape(shop))["petstore_events_waiting"] == 1
        shop.clock.advance(60)
        if restored:
            await shop.store.events.note_restore(ACTOR)
        else:
            await shop.post({"name": "Rex", "categoryId": 1})
        answer: Answer = await waiting
        assert answer.status == (410 if restored else 200)
        shown = await scrape(shop)
    spent = [number for name, number in shown.items() if name.startswith("petstore_request_seconds_sum")]
    assert sum(spent) == 0  # the clock stood but for the wait
    assert shown["petstore_events_waiting"] == 0
    lines = [line for line in log.lines() if line["path"] == EVENTS]
    assert [line["ms"] for line in lines] == [0, 60_000]


class TestForms:
    """Other ways to ask."""

    async def test_head_waits_as_get_does(self, shop: Shop) -> None:
        """HEAD is answered when GET would be, with the same headers."""
        start = f"{await now(shop)}&{LONG}"
        waits = shop.application.service.waits
        waiting = asyncio.ensure_future(shop.ask("HEAD", start))
        await until(lambda: len(waits) == 1)
        await shop.post({"name": "Rex", "categoryId": 1})
        answer = await waiting
        same = await shop.ask("GET", start)
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-length"] == str(len(same.body))
        assert (answer.headers["etag"], after(answer)) == (same.headers["etag"], after(same))

    async def test_an_empty_answer_that_is_known_is_304_at_the_end(self, shop: Shop) -> None:
        """An empty answer that the client knows is 304 only when the time of its wait ends, as the client
        waits for something else. The end of a wait gives the bookmark to go on from."""
        start = await now(shop)
        known = await shop.ask("GET", f"{start}&wait=1")
        assert (known.json(), after(known).replace("&wait=1", "")) == ([], start)
        asked = [("if-none-match", known.headers["etag"])]
        waiting = asyncio.ensure_future(shop.ask("GET", after(known), asked))
        waits = shop.application.service.waits
        await until(lambda: len(waits) == 1)
        assert (await waiting).status == 304
