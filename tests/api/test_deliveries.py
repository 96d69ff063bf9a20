"""The operations on deliveries: what a test waits for, the list of tries, and what is sent once more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from petstore.core.deliverers import Settled
from petstore.core.durations import HOUR_MS
from petstore.core.webhooks import DeliveryAttempt, Repetition
from tests.api.test_events import after, store_of_each
from tests.api.test_webhooks import DELIVERER, HOOK, add, change
from tests.api.world import EVENTS, WEBHOOKS
from tests.support.service import Answer, Shop, settle

__all__ = ["store_of_each"]


async def note(
    shop: Shop, *tries: DeliveryAttempt, webhook_id: int = 1, again: Sequence[Repetition] = ()
) -> None:
    """What a deliverer notes of tries."""
    await shop.store.deliverers.claim(DELIVERER, [], is_alone=True)
    webhooks = {each.id: each for each in (await shop.store.deliverers.owned(DELIVERER)).webhooks}
    bookmark, health = webhooks[webhook_id].after, webhooks[webhook_id].health
    settled = Settled(bookmark, health, list(tries), list(again), [])
    assert await shop.store.deliverers.settle(DELIVERER, webhooks[webhook_id], settled)


def delivered(event_id: str, **other: Any) -> DeliveryAttempt:
    members = {"at_ms": 0, "duration_ms": 120, "status": 204, "fault": None, "answer": "", **other}
    return DeliveryAttempt(event_id=event_id, type="webhook.test", **members)


class TestTestWebhook:
    """POST /webhooks/{webhookId}/test."""

    async def asking(self, shop: Shop) -> tuple[asyncio.Task[Answer], str]:
        """A test that waits for its outcome, and its event."""
        start = after(await shop.ask("GET", f"{EVENTS}?after=now&type=webhook.test"))
        asked = asyncio.create_task(shop.ask("POST", f"{HOOK}/test"))
        found: list[dict[str, Any]] = []
        while not found:
            assert not asked.done()
            found = (await shop.ask("GET", start)).json()
        await change(shop, {"description": "later"})  # so that what was written before is answered
        await settle()
        assert found[0]["data"] == {"id": 1}
        return asked, found[0]["id"]

    async def test_a_test_is_answered_with_its_first_try(self, store_of_each: Shop) -> None:
        """The answer to a webhook's test is its first try, as soon as there is one, a success or not."""
        shop = store_of_each
        await add(shop, types=["order.*"])
        asked, event_id = await self.asking(shop)
        fault = "The name shop.example has no address."
        await note(shop, delivered(event_id, status=None, fault=fault, next_at_ms=5_000))
        answer = await asked
        assert answer.status == 200
        assert answer.json() == {
            "eventId": event_id, "type": "webhook.test", "at": "1970-01-01T00:00:00.000Z", "durationMs": 120,
            "status": None, "fault": fault, "answer": "", "delivered": False,
            "nextAt": "1970-01-01T00:00:05.000Z",
        }  # fmt: skip
        assert (await shop.ask("GET", f"{HOOK}/deliveries")).json() == [answer.json()]

    async def test_202_after_twenty_seconds(self, shop: Shop) -> None:
        """The answer has the event alone. The headers of limits are those of that moment: Shop checks
        them."""
        await add(shop)
        asked, event_id = await self.asking(shop)
        shop.clock.advance(19)
        await asyncio.sleep(0)
        assert not asked.done()
        shop.clock.advance(1)
        answer = await asked
        assert (answer.status, answer.json()) == (202, {"eventId": event_id})

    async def test_202_at_a_stop(self, shop: Shop) -> None:
        """Nobody waits for what this process can't bring any more."""
        await add(shop)
        asked, event_id = await self.asking(shop)
        shop.application.begin_drain()
        answer = await asked
        assert (answer.status, answer.json()) == (202, {"eventId": event_id})

    async def test_429_for_the_eleventh_within_a_minute(self, shop: Shop) -> None:
        """All webhooks of an account share ten a minute, and no other account's; Retry-After says when the
        next one is possible."""
        other, _ = await shop.open_account("other")
        for key in (None, None, other):
            await add(shop, key=key)
        shop.application.begin_drain()  # each is answered at once
        for number in range(10):
            assert (await shop.ask("POST", f"{WEBHOOKS}/{1 + number % 2}/test")).status == 202
            shop.clock.advance(2)
        refused = await shop.ask("POST", f"{HOOK}/test")
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "40")
        assert (await shop.ask("POST", f"{WEBHOOKS}/3/test", key=other)).status == 202
        shop.clock.advance(39)
        assert (await shop.ask("POST", f"{HOOK}/test")).headers["retry-after"] == "1"
        shop.clock.advance(1)
        assert (await shop.ask("POST", f"{HOOK}/test")).status == 202

    async def test_tests_of_a_clock_that_was_ahead_do_not_count(self, store_of_each: Shop) -> None:
        """Nobody waits for an hour until the clock shows their time again."""
        shop = store_of_each
        await add(shop)
        shop.application.begin_drain()  # each is answered at once
        for _ in range(10):
            assert (await shop.ask("POST", f"{HOOK}/test")).status == 202
        shop.clock.set_by(-3_600)
        assert (await shop.ask("POST", f"{HOOK}/test")).status == 202


class TestListDeliveries:
    """GET /webhooks/{webhookId}/deliveries."""

    async def test_a_walk_begins_with_the_newest(self, store_of_each: Shop) -> None:
        """`Link` leads to the end; a cursor is of one webhook."""
        shop = store_of_each
        for _ in range(2):
            await add(shop)
        await note(shop, *(delivered(f"evt_000000000000_{number}") for number in range(1, 6)))
        await note(shop, delivered("evt_000000000000_9"), webhook_id=2)
        found, target = [], f"{HOOK}/deliveries?limit=2"
        while target:
            page = await shop.ask("GET", target)
            assert page.links["first"] == f"{HOOK}/deliveries?limit=2"
            found.append([each["eventId"][-1] for each in page.json()])
            target = page.links.get("next", "")
        assert found == [["5", "4"], ["3", "2"], ["1"]]
        target = (await shop.ask("GET", f"{HOOK}/deliveries?limit=1")).links["next"]
        assert (await shop.ask("GET", target.replace("/1/", "/2/"))).status == 400
        assert len((await shop.ask("GET", f"{WEBHOOKS}/2/deliveries")).json()) == 1

    async def test_a_disabled_webhook_repeats_nothing(self, store_of_each: Shop) -> None:
        """`nextAt` of what waits is null until it is enabled; what was repeated keeps its time."""
        shop = store_of_each
        await add(shop)
        failed = {"status": 500, "fault": "It answered 500."}
        tries = [delivered("evt_000000000000_1", next_at_ms=at_ms, **failed) for at_ms in (5_000, 9_000)]
        await note(shop, *tries, again=[Repetition(9_000, "0" * 12, 1, 2)])
        repeated, waits = "1970-01-01T00:00:05.000Z", "1970-01-01T00:00:09.000Z"
        for enabled, expected in ((True, waits), (False, None), (True, waits)):
            await change(shop, {"enabled": enabled})
            found = (await shop.ask("GET", f"{HOOK}/deliveries")).json()
            assert [each["nextAt"] for each in found] == [expected, repeated]

    async def test_a_disabled_webhook_promises_nothing_for_what_was_asked_for_sooner(
        self, shop: Shop
    ) -> None:
        """The later time is the repetition's no more, and is still to come."""
        await add(shop)
        await shop.post({"name": "Rex", "categoryId": 1})
        [animal] = (await shop.ask("GET", f"{EVENTS}?type=pet.created&limit=1")).json()
        _, data_set, number = animal["id"].split("_")
        later_ms = shop.clock.now_ms() + HOUR_MS
        failed = delivered(animal["id"], status=500, fault="It answered 500.", next_at_ms=later_ms)
        await note(shop, failed, again=[Repetition(later_ms, data_set, int(number), 1)])
        assert (await shop.ask("POST", f"{HOOK}/deliveries/{animal['id']}")).status == 202
        await change(shop, {"enabled": False})
        [found] = (await shop.ask("GET", f"{HOOK}/deliveries")).json()
        assert found["nextAt"] is None


async def test_redeliver_takes_what_the_account_sees(shop: Shop) -> None:
    """202 each time, and the event is to be sent again once. Another account's order is not an event."""
    other, _ = await shop.open_account("other")
    for name in ("Rex", "Mia"):
        await shop.post({"name": name, "categoryId": 1})
    await shop.send("POST", "/v1/store/orders", {"petId": 1}, key=other)
    [animal] = (await shop.ask("GET", f"{EVENTS}?type=pet.created&limit=1")).json()
    [order] = (await shop.ask("GET", f"{EVENTS}?type=order.created", key=other)).json()
    for key in (None, None, other):
        await add(shop, key=key)
    shop.application.begin_drain()
    test = (await shop.ask("POST", f"{WEBHOOKS}/2/test")).json()["eventId"]
    for _ in range(2):
        answer = await shop.ask("POST", f"{HOOK}/deliveries/{animal['id']}")
        assert (answer.status, answer.json()) == (202, {"eventId": animal["id"]})
    for webhook_id, event_id, key, status in (
        (1, order["id"], None, 404), (3, order["id"], other, 202), (1, test, None, 404),
        (2, test, None, 202),
    ):  # fmt: skip
        answer = await shop.ask("POST", f"{WEBHOOKS}/{webhook_id}/deliveries/{event_id}", key=key)
        assert answer.status == status, (webhook_id, event_id)
    await shop.store.deliverers.claim(DELIVERER, [], is_alone=True)
    repeated = [
        (webhook_id, each.entry_id)
        for webhook_id, each in (await shop.store.deliverers.owned(DELIVERER)).repetitions
    ]
    numbers = [int(each.rpartition("_")[2]) for each in (animal["id"], test, order["id"])]
    assert sorted(repeated) == [(1, numbers[0]), (2, numbers[1]), (3, numbers[2])]
