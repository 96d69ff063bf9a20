"""The feed of events: its bookmark, its waits, and what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from petstore.api.events import RETRY_SECONDS
from petstore.core.limits.plans import PRO
from petstore.core.moments import iso_moment
from tests.api.world import BACKENDS, EVENTS
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database
from tests.support.service import Answer, Shop, open_shop, outsider, settle
from tests.support.valkey import emptied_url
from tests.support.waiting import until

# Longer than any test: what ends a wait is something else.
LONG = "wait=120"


@pytest.fixture(params=BACKENDS)
async def store_of_each(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop on each store, with the counters that go with it. Bans begin soon: Valkey's clock is its own."""
    bans: dict[str, Any] = {"ban_grace": "1ms", "ban_minimum_rejections": "1"}
    if request.param == "sqlite":
        async with open_shop(tmp_path, **bans) as shop:
            yield shop
        return
    with fresh_database(migrated=True) as url:
        others: dict[str, Any] = {"database_url": url, "valkey_url": emptied_url(), "replicas": "1"}
        async with open_shop(tmp_path, **others, **bans) as shop:
            yield shop


def after(answer: Answer) -> str:
    """The address of the next request."""
    return answer.links["next"]


async def now(shop: Shop, query: str = "") -> str:
    return after(await shop.ask("GET", f"{EVENTS}?after=now{query}"))


def types_of(answer: Answer) -> list[str]:
    return [event["type"] for event in answer.json()]


async def begin(shop: Shop, target: str, key: str | None = None) -> asyncio.Task[Answer]:
    """A request that waits by the time this returns."""
    waits = shop.application.service.waits
    before = len(waits)
    asking = asyncio.ensure_future(shop.ask("GET", target, key=key))
    await until(lambda: len(waits) > before or asking.done())
    await settle()
    return asking


class TestPages:
    """What an answer has."""

    async def test_an_answer_has_the_events_and_always_a_bookmark(self, shop: Shop) -> None:
        """Every parameter is kept in it, each type once, or the next request might be longer than one may
        be; an empty answer has one too."""
        types = "type=pet.*,pet.*&type=order.created&type=pet.*"
        begin = await shop.ask("GET", f"{EVENTS}?after=now&{types}&limit=3")
        assert begin.json() == []
        assert after(begin).startswith(f"{EVENTS}?limit=3&type=pet.*&type=order.created&after=")
        await shop.post({"name": "Rex", "categoryId": 1})
        answer = await shop.ask("GET", after(begin))
        [event] = answer.json()
        assert event["id"].startswith("evt_")
        assert (event["type"], event["timestamp"]) == ("pet.created", iso_moment(shop.clock.now_ms()))
        assert event["data"] == {"id": 1, "name": "Rex", "categoryId": 1, "status": "available"}
        again = await shop.ask("GET", after(answer))
        assert again.json() == []
        assert after(again) == after(answer)

    async def test_further_events_are_announced(self, shop: Shop) -> None:
        """The header is absent where the bookmark is at the end."""
        start = await now(shop)
        for _ in range(3):
            await shop.post({"name": "Rex", "categoryId": 1})
        first = await shop.ask("GET", f"{start}&limit=2".replace("limit=20&", ""))
        assert (len(first.json()), first.headers.get("events-behind")) == (2, "true")
        last = await shop.ask("GET", after(first))
        assert (len(last.json()), last.headers.get("events-behind")) == (1, None)

    async def test_types_stand_apart_or_with_commas(self, shop: Shop) -> None:
        """`type` takes several types, repeated or with commas, as `id` does in other lists."""
        start = await now(shop)
        await shop.post({"name": "Rex", "categoryId": 1})
        await shop.patch(1, {"status": "sold"})
        await shop.ask("DELETE", "/v1/pets/1")
        for query in ("&type=pet.created&type=pet.deleted", "&type=pet.created,pet.deleted"):
            assert types_of(await shop.ask("GET", start + query)) == ["pet.created", "pet.deleted"]


class TestWaits:
    """An empty answer is held back if the request has `wait`."""

    async def test_a_commit_ends_a_wait(self, store_of_each: Shop) -> None:
        """A commit ends a wait at once, and the answer has its event."""
        shop = store_of_each
        waiting = await begin(shop, f"{await now(shop)}&{LONG}")
        assert not waiting.done()
        await shop.post({"name": "Rex", "categoryId": 1})
        answer = await waiting
        assert types_of(answer) == ["pet.created"]
        assert "wait=120" in after(answer)

    async def test_a_commit_of_another_process_ends_a_wait(self, store_of_each: Shop) -> None:
        """Nobody tells this one: it looks."""
        shop = store_of_each
        shop.store.on_commit(lambda: None)
        waiting = await begin(shop, f"{await now(shop)}&{LONG}")
        await shop.post({"name": "Rex", "categoryId": 1})
        assert types_of(await waiting) == ["pet.created"]

    async def test_an_event_of_somebody_else_or_another_type_ends_no_wait(self, store_of_each: Shop) -> None:
        """The first one that the request asks for, and may see, does."""
        shop = store_of_each
        other, _ = await shop.open_account("other", "enterprise", 1_000, 1_000)
        await shop.post({"name": "Rex", "categoryId": 1})
        await shop.post({"name": "Max", "categoryId": 1})
        waiting = await begin(shop, f"{await now(shop, '&type=order.*')}&{LONG}")
        await shop.send("POST", "/v1/store/orders", {"petId": 1}, key=other)
        await shop.post({"name": "Mia", "categoryId": 1})
        assert not waiting.done()
        await shop.send("POST", "/v1/store/orders", {"petId": 2})
        answer = await waiting
        assert [(event["type"], event["data"]["petId"]) for event in answer.json()] == [("order.created", 2)]

    async def test_events_that_are_there_are_not_waited_for(self, shop: Shop) -> None:
        """The answer comes at once."""
        start = await now(shop)
        await shop.post({"name": "Rex", "categoryId": 1})
        waiting = asyncio.ensure_future(shop.ask("GET", f"{start}&{LONG}"))
        assert types_of(await waiting) == ["pet.created"]

    async def test_a_plan_bounds_the_waits_of_an_account(self, shop: Shop) -> None:
        """One more is answered at once and says when to try again. Other accounts and plans have more."""
        free, _ = await shop.open_account("free", "free")
        start = f"{await now(shop, '&type=pet.*')}&{LONG}"
        waiting = [await begin(shop, start, free)]
        refused = await shop.ask("GET", start, key=free)
        assert (refused.status, refused.json()) == (200, [])
        assert refused.headers["retry-after"] == str(RETRY_SECONDS)
        waiting.append(await begin(shop, start))
        await shop.store.accounts.set_plan("free", PRO, ACTOR)
        waiting += [await begin(shop, start, free) for _ in range(4)]
        assert (await shop.ask("GET", start, key=free)).headers["retry-after"]
        assert not any(each.done() for each in waiting)
        await shop.post({"name": "Rex", "categoryId": 1})
        assert [types_of(await each) for each in waiting] == [["pet.created"]] * 6

    async def test_a_plan_of_a_later_version_has_one_wait(self, shop: Shop) -> None:
        """Accounts on such a plan are served meanwhile, by the limits that the store has."""
        key, _ = await shop.open_account("later", "free")
        with outsider(shop.path) as connection:
            connection.execute("UPDATE accounts SET plan = 'team' WHERE name = 'later'")
        start = f"{await now(shop)}&{LONG}"
        waiting = await begin(shop, start, key)
        assert (await shop.ask("GET", start, key=key)).headers["retry-after"]
        waiting.cancel()

    async def test_a_drain_answers_all_and_nobody_waits_any_more(self, shop: Shop) -> None:
        """Empty, with the bookmark; who waited may come at once, who comes then is told to come later: a
        client that waits again and again would use up its day meanwhile."""
        start = f"{await now(shop)}&{LONG}"
        waiting = [await begin(shop, start) for _ in range(20)]
        shop.application.begin_drain()
        answers: list[Any] = [await each for each in waiting]
        assert [(answer.json(), answer.headers.get("retry-after")) for answer in answers] == [([], None)] * 20
        late = await shop.ask("GET", start)
        assert late.headers["retry-after"] == str(RETRY_SECONDS)
        assert {after(answer) for answer in answers} == {after(late)}
        assert len(shop.application.service.waits) == 0
