"""What arrives at a receiver, when, and in which order: real requests, a steered clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from petstore.core.events import BY_ENTRY, TESTED, EventPage, EventQuery
from petstore.core.orders import NewOrder
from petstore.core.webhooks import REPETITIONS_MS, DisabledReason, Webhook, WebhookChange
from petstore.storage.store import Store
from petstore.transactions.journal import record
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.waiting import until
from tests.support.webhooks import (
    Answer,
    Gate,
    Got,
    Process,
    Receiver,
    Recorder,
    account,
    add,
    answers,
    attempts,
    feed,
    webhook,
)

ROWS = "SELECT at_ms, entry_id, tries FROM webhook_repetitions ORDER BY at_ms"


async def enable(store: Store, is_enabled: bool = True) -> None:
    await store.webhooks.change(1, WebhookChange(enabled=is_enabled), ACTOR)


async def test_each_event_arrives_once_and_begins_in_order(
    store: Store, hook: Webhook, process: Process, receiver: Receiver, sender: Recorder
) -> None:
    """Each event arrives once, and first tries begin in the order of the feed, in batches of any length."""
    for count in (70, 1):
        await add(store, count)
        await process.work()
        await process.work()
    assert sender.began == await feed(store)
    assert sorted(receiver.taken()) == sorted(sender.began)
    assert all(each.is_success for each in await attempts(store, 1))


async def test_who_gets_what_by_account_and_type(store: Store, process: Process, receiver: Receiver) -> None:
    """I24: entries of every type, about objects of two accounts. Each gets what is shared and its own, and of
    what is another's nothing, whatever it asks for."""
    hooks = {}
    for number in (1, 2):
        await account(store, f"shop{number}")
        hooks[number] = await webhook(store, number, receiver.url(f"/{number}"))
        await webhook(store, number, receiver.url(f"/{number}/some"), "key.*", "webhook.disabled")
        await add(store)
        await store.orders.place(number, NewOrder(number), ACTOR)
    await process.work()
    receiver.got.clear()
    for kind, of in BY_ENTRY.items():
        subject, action = kind.split(".")
        for number in (1, 2):
            subject_id = hooks[number] if subject == "webhook" else number
            entry: tuple[Any, ...] = (
                0,
                ACTOR,
                subject,
                subject_id,
                action,
                {},
                dict.fromkeys(of.members, "new"),
            )
            await store.journal._database.write(lambda entry=entry: record(*entry))  # type: ignore[misc]
    await process.work()
    for number in (1, 2):
        expected = [
            (of.name, subject_id if of.members else None)
            for kind, of in BY_ENTRY.items()
            for owner, subject_id in (hooks if of.subject == "webhook" else {1: 1, 2: 2}).items()
            if of.is_shared or owner == number
            if kind != TESTED
        ]
        some = [(kind, of) for kind, of in expected if kind.startswith("key.") or kind == "webhook.disabled"]
        for path, those in ((f"/{number}", expected), (f"/{number}/some", some)):
            events = [got.event for got in receiver.got if got.path == path]
            assert sorted((event["type"], str(event["data"].get("id"))) for event in events) == sorted(
                (kind, str(of)) for kind, of in those
            )


async def test_a_failure_is_repeated_by_the_schedule_and_then_over(
    store: Store, backend: SharedData, hook: Webhook, process: Process, receiver: Receiver, clock: ManualClock
) -> None:
    """5 s, 30 s, 5 min, 30 min, 2, 5, 10, 14, 20, 24 h after the attempt before, up to a fifth more or less;
    a newer event does not wait."""

    async def refuse(got: Got) -> web.Response:
        return web.Response(status=204 if got.event["data"]["id"] == 2 else 500, text="out of order")

    receiver.answer = refuse
    await add(store, 2)
    await process.work()
    first, second = await feed(store)
    assert receiver.taken() == [first, second]
    for number, pause_ms in enumerate(REPETITIONS_MS, 1):
        ((at_ms, _, count),) = backend.execute(ROWS)
        assert isinstance(at_ms, int)
        assert (count, abs(at_ms - clock.ms - pause_ms) <= pause_ms * 0.2) == (number, True)
        await process.wait_until(at_ms - 1)
        assert receiver.taken() == []
        await process.wait_until(at_ms)
        assert receiver.taken() == [first]
    assert backend.execute(ROWS) == []
    noted = [each for each in await attempts(store, 1) if not each.is_success]
    assert [each.next_at_ms is None for each in noted] == [False] * 10 + [True]
    assert {(each.status, each.fault, each.answer) for each in noted} == {
        (500, "It answered 500.", "out of order")
    }


async def test_the_window_opens_with_successes_and_a_failure_closes_it(
    store: Store, hook: Webhook, process: Process, receiver: Receiver, sender: Recorder
) -> None:
    """One request at a time, then up to eight at once; of a backlog."""
    gate = receiver.answer = Gate()
    await add(store, 40)
    working = asyncio.create_task(process.work())
    for width, status in [(1, 204), (2, 204), (4, 204), (8, 204), (8, 500), (1, 204), (2, 204)]:
        await until(lambda width=width: len(gate.waiting) == sender.under_way == width)  # type: ignore[misc]
        gate.open(status)
        await until(lambda: sender.under_way == len(gate.waiting) > 0)
    receiver.answer = answers(204)
    gate.open()
    await working
    assert len(set(sender.began)) == 40


async def test_one_that_is_down_gets_a_probe_at_a_time_and_its_events_wait(
    store: Store,
    backend: SharedData,
    hook: Webhook,
    process: Process,
    receiver: Receiver,
    sender: Recorder,
    clock: ManualClock,
) -> None:
    """A webhook with 20 failures in a row gets no more rows and keeps its bookmark; after its first success
    all events arrive in the order of the feed."""
    receiver.answer = answers(500)
    await add(store, 60)
    await process.work()
    assert len(receiver.taken()) == len(backend.execute(ROWS)) == 20
    bookmark = backend.execute("SELECT after_id FROM webhooks")
    for _ in range(30):
        ((at_ms, *_), *_) = backend.execute(ROWS)
        assert isinstance(at_ms, int)
        await process.wait_until(at_ms)
        assert 1 <= len(receiver.taken()) < 20
    assert sender.most_under_way == 1
    assert len(set(sender.began)) == len(backend.execute(ROWS)) == 20
    assert backend.execute("SELECT after_id FROM webhooks") == bookmark
    receiver.answer = answers(204)
    await process.wait_until(clock.ms + 30 * HOUR_MS)
    ids = await feed(store)
    assert sorted(receiver.taken()) == sorted(ids)
    assert list(dict.fromkeys(sender.began)) == ids
    assert backend.execute(ROWS) == []
    assert (await store.webhooks.get(1)).failing_since_ms is None


@pytest.mark.parametrize(
    ("told", "pause_ms"),
    [
        ((429, 90 * SECOND_MS, "seconds"), 90 * SECOND_MS),
        ((503, 90 * SECOND_MS, "date"), 90 * SECOND_MS),
        ((429, 9 * DAY_MS, "seconds"), DAY_MS),
        ((500, 90 * SECOND_MS, "seconds"), 0),
    ],
)
async def test_retry_after_holds_everything(
    store: Store,
    hook: Webhook,
    process: Process,
    receiver: Receiver,
    clock: ManualClock,
    told: tuple[int, int, str],
    pause_ms: int,
) -> None:
    """The header of a 429 or 503 holds up to a day: newer events too, and they need no other event to go
    on."""
    status, asked_ms, form = told
    moment = datetime.fromtimestamp((clock.ms + asked_ms) / SECOND_MS, UTC)
    text = str(asked_ms // SECOND_MS) if form == "seconds" else format_datetime(moment, usegmt=True)
    receiver.answer = answers(status, Retry_After=text)
    await add(store, 3)
    await process.work()
    first, *others = await feed(store)
    if not pause_ms:
        assert receiver.taken() == [first, *others]
        return
    assert receiver.taken() == [first]
    until_ms = clock.ms + pause_ms
    receiver.answer = answers(204)
    await process.wait_until(until_ms - 1_000)
    assert receiver.taken() == []
    await process.wait_until(until_ms)
    assert receiver.taken() == [first, *others]


async def test_newer_events_go_on_at_the_end_of_a_pause_though_repetitions_are_later(
    store: Store, hook: Webhook, process: Process, receiver: Receiver, clock: ManualClock
) -> None:
    """An event that has failed often is due in hours; the pause is one of seconds."""
    receiver.answer = answers(500)
    await add(store)
    await process.work()
    for _ in range(4):
        await process.wait_until(clock.ms + HOUR_MS)
    receiver.answer = answers(429, Retry_After="60")
    await process.wait_until(clock.ms + 3 * HOUR_MS)
    receiver.taken()
    receiver.answer = answers(204)
    await add(store, 2)
    await process.work()
    assert receiver.taken() == []
    await process.wait_until(clock.ms + 60 * SECOND_MS)
    old, *others = await feed(store)
    assert receiver.taken() == others
    await process.wait_until(clock.ms + 6 * HOUR_MS)
    assert receiver.taken() == [old]


async def pause(store: Store, process: Process, receiver: Receiver, status: int) -> None:
    """The first of two events is answered with an hour's pause; what comes then is taken."""
    receiver.answer = answers(status, Retry_After="3600")
    await add(store, 2)
    await process.work()
    receiver.answer = answers(204)
    receiver.taken()


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_clock_that_was_set_back_holds_nothing(
    store: Store,
    hook: Webhook,
    process: Process,
    receiver: Receiver,
    sender: Recorder,
    clock: ManualClock,
    is_restarted: bool,
) -> None:
    """A clock that was set back delays no pause or repetition of a year ahead, nor what waits after it."""
    now_ms, clock.ms = clock.ms, clock.ms + 365 * DAY_MS
    await pause(store, process, receiver, 503)
    if is_restarted:
        await process.stop()
        process = Process(store, sender, clock)
    await process.wait_until(now_ms)
    assert sorted(receiver.taken()) == await feed(store)


async def test_who_asks_for_a_test_does_not_wait_for_a_pause(
    store: Store, hook: Webhook, process: Process, receiver: Receiver
) -> None:
    """A test waits neither for a webhook's pause nor for the repetitions that are due at its end."""
    await pause(store, process, receiver, 503)
    event_id = await store.deliveries.test(1, ACTOR, 1)
    await process.work()
    assert [got.event["id"] for got in receiver.got[-1:]] == [event_id]
    assert len(receiver.taken()) == 1


async def test_another_url_is_not_left_alone_for_the_former_one(
    store: Store, hook: Webhook, process: Process, receiver: Receiver
) -> None:
    """The new receiver gets at once what waits for no repetition."""
    await pause(store, process, receiver, 429)
    await store.webhooks.change(1, WebhookChange(url=receiver.url("/new")), ACTOR)
    await process.work()
    _, second = await feed(store)
    assert receiver.taken() == [second]


def holding() -> tuple[dict[int, asyncio.Future[web.Response]], Answer]:
    """An answer about an animal waits for the future under its id; `/other` gets one at once."""
    gates: dict[int, asyncio.Future[web.Response]] = {}

    async def hold(got: Got) -> web.Response:
        if got.path == "/other":
            return web.Response()
        gate: asyncio.Future[web.Response]
        gate = gates[got.event["data"]["id"]] = asyncio.get_running_loop().create_future()
        return await gate

    return gates, hold


@pytest.mark.parametrize("other", [204, 500])
async def test_what_ends_later_does_not_lift_a_pause(
    store: Store, hook: Webhook, process: Process, receiver: Receiver, clock: ManualClock, other: int
) -> None:
    """Attempts that were under way when one was told to come back later."""
    await add(store, 3)
    await process.work()
    gates, receiver.answer = holding()
    receiver.taken()
    await add(store, 4)
    working = asyncio.create_task(process.work())
    await until(lambda: len(gates) == 4)
    gates[4].set_result(web.Response(status=429, headers={"Retry-After": "600"}))
    await until(lambda: process.health(1).paused_until_ms > clock.ms)
    for number in (5, 6, 7):
        gates[number].set_result(web.Response(status=other))
    await working
    receiver.answer = answers(204)
    receiver.taken()
    await add(store)
    await process.wait_until(clock.ms + 599 * SECOND_MS)
    assert receiver.taken() == []
    await process.wait_until(clock.ms + SECOND_MS)
    assert len(receiver.taken()) == (2 if other == 204 else 5)


async def test_410_disables_and_what_is_under_way_is_noted(
    store: Store, process: Process, receiver: Receiver, hook: Webhook, clock: ManualClock
) -> None:
    """Others of the account are told. Enabled again it gets what it lacks."""
    await webhook(store, 1, receiver.url("/other"), "webhook.disabled")
    await add(store, 3)
    await process.work()
    gates, receiver.answer = holding()
    await add(store, 8)
    working = asyncio.create_task(process.work())
    await until(lambda: len(gates) == 4)
    gates[4].set_result(web.Response(status=410))
    await until(lambda: process.health(1).failures > 0)
    for number, status in ((5, 204), (6, 500), (7, 204)):
        gates[number].set_result(web.Response(status=status))
    await working
    found = await store.webhooks.get(1)
    assert found.disabled is DisabledReason.GONE
    (told,) = [got.event for got in receiver.got if got.path == "/other"]
    assert told["data"] == {
        "id": 1,
        "enabled": False,
        "disabledReason": "gone",
        "previous": {"enabled": True, "disabledReason": None},
    }
    (entry,) = [entry for entry in await entries(store, "webhook:1") if entry.type == "webhook.disabled"]
    assert entry.actor == "service"
    receiver.answer = answers(204)
    receiver.taken()
    await process.wait_until(clock.ms + DAY_MS)
    assert receiver.taken() == []
    await enable(store)
    await process.work()
    ids = await feed(store)
    assert sorted(receiver.taken()) == sorted([ids[3], ids[5], *ids[7:]])


async def test_the_time_that_a_clock_was_set_by_is_no_failure(
    store: Store, process: Process, receiver: Receiver, hook: Webhook, clock: ManualClock
) -> None:
    """A webhook that fails since a start in 1970 has not failed for decades once the clock is right."""
    receiver.answer = answers(500)
    await add(store)
    await process.work()
    clock.set_by(30 * 365 * 86_400)
    began_ms = clock.ms
    await process.wait_until(began_ms + 5 * DAY_MS - 1)
    found = await store.webhooks.get(1)
    assert (found.disabled, found.failing_since_ms) == (None, began_ms)
    await add(store)
    await process.wait_until(began_ms + 6 * DAY_MS)
    assert (await store.webhooks.get(1)).disabled is DisabledReason.FAILING


async def test_five_days_without_a_success_disable(
    store: Store, process: Process, receiver: Receiver, hook: Webhook, clock: ManualClock
) -> None:
    """A webhook is disabled after five days without success, no sooner, and not for one bad attempt."""
    receiver.answer = answers(500)
    await add(store)
    await process.work()
    receiver.answer = answers(204)
    await process.wait_until(clock.ms + 6 * SECOND_MS)
    clock.ms += 6 * DAY_MS
    receiver.answer = answers(500)
    began_ms = clock.ms
    await add(store)
    await process.work()
    assert (await store.webhooks.get(1)).failing_since_ms == began_ms
    for hours in range(12, 120, 12):
        await process.wait_until(began_ms + hours * HOUR_MS)
        await add(store)
    await process.wait_until(began_ms + 5 * DAY_MS - 1)
    assert (await store.webhooks.get(1)).disabled is None
    await add(store)
    await process.wait_until(began_ms + 6 * DAY_MS)
    assert (await store.webhooks.get(1)).disabled is DisabledReason.FAILING
    receiver.answer = answers(204)
    receiver.taken()
    await enable(store)
    assert (await store.webhooks.get(1)).failing_since_ms is None
    await process.work()
    assert (await feed(store))[-1] in receiver.taken()


async def test_many_webhooks_read_a_few_at_a_time(
    store: Store, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn of the loop reads a few webhooks, or the process would show no life and be replaced."""
    for number in range(34):
        await account(store, f"shop-{number}")
        for _ in range(3):
            await webhook(store, number + 1, "https://shop.example/hook", "category.*")
    await add(store, 2)
    loop, read, most, reads = asyncio.get_running_loop(), store.events.page, 0, 0

    def count() -> None:
        nonlocal most, reads
        most, reads = max(most, reads), 0

    async def page(query: EventQuery) -> EventPage:
        nonlocal reads
        if not reads:
            loop.call_soon(count)
        reads += 1
        return await read(query)

    monkeypatch.setattr(store.events, "page", page)
    await process.work()
    assert len(process.has) == 102
    assert most <= 4


async def test_it_goes_on_where_it_stopped(
    store: Store, process: Process, receiver: Receiver, hook: Webhook, clock: ManualClock
) -> None:
    """When it is enabled again, and when the account is resumed."""
    for stop, resume in (
        (lambda: enable(store, False), lambda: enable(store)),
        (lambda: store.accounts.suspend("shop", ACTOR), lambda: store.accounts.resume("shop", ACTOR)),
    ):
        await stop()
        await add(store, 2)
        await process.wait_until(clock.ms + MINUTE_MS)
        assert receiver.taken() == []
        await resume()
        await process.work()
        assert receiver.taken() == (await feed(store))[-2:]
    await store.accounts.close("shop", ACTOR)
    await add(store)
    await process.work()
    assert receiver.taken() == []
