"""Very many webhooks: while nothing happens nobody is visited and little is read; stops, copies."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from petstore.background import deliverer
from petstore.background.delivery_queue import DeliveryQueue
from petstore.core.durations import HOUR_MS, MINUTE_MS
from petstore.core.webhooks import Webhook
from petstore.storage.store import Store
from petstore.transactions.deliverers import Owned
from petstore.transactions.events import RENEW
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, of_each_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.waiting import until
from tests.support.webhooks import Gate, Process, Receiver, Recorder, add, answers, feed

_MANY = 30


@pytest.fixture
def many(backend: SharedData, hook: Webhook) -> None:
    """All like the one."""
    columns = (
        "account_id, key_id, url, types, description, created_at_ms, secrets, data_set, after_transaction,"
        " after_id"
    )
    for _ in range(_MANY - 1):
        backend.execute(
            f"INSERT INTO webhooks ({columns}) SELECT {columns} FROM webhooks ORDER BY id LIMIT 1"
        )


@pytest.mark.usefixtures("many")
async def test_who_waits_for_nothing_is_not_visited(
    store: Store, process: Process, receiver: Receiver, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll visits those alone that have something to repeat, and they are not forgotten."""
    visited: list[int] = []
    wakes_at_ms = DeliveryQueue.wakes_at_ms.fget  # type: ignore[attr-defined]

    def noted(each: DeliveryQueue) -> int | None:
        visited.append(each.webhook.id)
        found: int | None = wakes_at_ms(each)
        return found

    monkeypatch.setattr(DeliveryQueue, "wakes_at_ms", property(noted))
    await process.work()
    await process.poll()
    visited.clear()
    await process.poll()
    assert visited == []
    receiver.answer = answers(500)
    await store.deliveries.test(7, ACTOR, 1)
    await process.work()
    await process.poll()
    visited.clear()
    await process.poll()
    assert visited == [7]
    await process.wait_until(clock.ms + MINUTE_MS)
    assert receiver.types() == ["webhook.test"] * 2
    await add(store)
    await process.work()
    assert receiver.types().count("pet.created") >= _MANY - 1


@pytest.mark.usefixtures("many")
async def test_all_are_read_again_in_proportion_to_what_that_takes(
    store: Store, process: Process, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All webhooks are read again after 3 times the last reading's duration on a change, else 30 times."""
    owned, reads = store.deliverers.owned, list[float]()

    async def slow(owner: str) -> Owned:
        clock.advance(2)
        reads.append(clock.monotonic())
        return await owned(owner)

    monkeypatch.setattr(store.deliverers, "owned", slow)

    async def reads_after(seconds: float) -> int:
        clock.advance(seconds)
        reads.clear()
        await process.poll()
        return len(reads)

    async def change() -> None:
        await store.webhooks.rotate(1, ACTOR, lambda text, _: text)

    assert await reads_after(0) == 1
    assert await reads_after(11) == 0
    await change()
    assert await reads_after(0) == 1
    await change()
    assert [await reads_after(seconds) for seconds in (0, 5, 1, 39, 10, 11)] == [0, 0, 1, 0, 0, 1]
    await store.accounts.rename("shop", "shop2", ACTOR)
    assert await reads_after(9) == 0


async def test_no_rest_holds_what_waits(
    store: Store,
    backend: SharedData,
    hook: Webhook,
    process: Process,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are read with each claim where that is short, or one has more to repeat than is read at a time; and
    each minute even if a read took very long, in a store that stood still."""
    owned, reads, took = store.deliverers.owned, list[float](), 0.2

    async def slow(owner: str) -> Owned:
        clock.advance(took)
        reads.append(clock.monotonic())
        return await owned(owner)

    monkeypatch.setattr(store.deliverers, "owned", slow)
    monkeypatch.setattr(deliverer, "REPETITIONS_READ", 2)
    await process.work()

    async def reads_after(*pauses: float) -> list[int]:
        found = []
        for seconds in pauses:
            clock.advance(seconds)
            reads.clear()
            await process.poll()
            found.append(len(reads))
        return found

    assert await reads_after(9.9, 9.9) == [1, 1]
    took = 2
    assert await reads_after(11, 11) == [1, 0]
    later = [(number, clock.ms + HOUR_MS + number) for number in (1, 2)]
    rows = ", ".join(f"(1, 'd', {number}, 1, {at_ms})" for number, at_ms in later)
    backend.execute(f"INSERT INTO webhook_repetitions VALUES {rows}")
    assert (await reads_after(*[11] * 5)).count(1) == 1
    assert await reads_after(11, 11) == [1, 1]
    backend.execute("DELETE FROM webhook_repetitions")
    took = 25
    assert await reads_after(11, 11, 11, 11, 11, 11, 11) == [1, 0, 0, 0, 0, 0, 1]


async def test_a_process_that_stood_still_during_visits_goes_on_at_once(
    store: Store, hook: Webhook, sender: Recorder, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not rest for three times as long."""
    clock = ManualClock()
    running = Process(store, sender, clock).deliverer
    interested = running._interested

    def stand_still(seen: Any) -> Any:
        clock.advance(MINUTE_MS / 1_000)
        return interested(seen)

    monkeypatch.setattr(running, "_interested", stand_still)
    task = asyncio.create_task(running.run())
    await until(lambda: any(each.is_idle and each.has_read_all for each in running._queues.values()))
    assert running._visits_took > 0
    await add(store)
    await until(lambda: receiver.types() == ["pet.created"])
    task.cancel()
    await asyncio.wait([task])


async def tasks_of(work: Coroutine[Any, Any, None]) -> int:
    """How many it begins."""
    begun = 0

    def factory(loop: asyncio.AbstractEventLoop, made: Any, **options: Any) -> asyncio.Task[Any]:
        nonlocal begun
        begun += 1
        return asyncio.Task(made, loop=loop, **options)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    try:
        await work
    finally:
        loop.set_task_factory(None)
    return begun


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_stop_waits_for_all_together(
    store: Store, process: Process, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, *, is_busy: bool
) -> None:
    """However many there are, and whether they have something to do: not for each by itself."""
    monkeypatch.setattr(deliverer, "_STOP_SECONDS", 0.0)
    await process.work()
    if is_busy:
        gate = receiver.answer = Gate()
        await add(store)
        await process.poll()
        await until(lambda: len(gate.waiting) == _MANY)
    assert await tasks_of(process.stop()) < _MANY
    assert not any(each._task for each in process.deliverer._queues.values())


@of_each_store
@pytest.mark.usefixtures("many")
async def test_in_a_copy_nothing_is_left_out(
    store: Store, backend: SharedData, process: Process, sender: Recorder, receiver: Receiver,
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """They go on there at their bookmarks, no log says something else, and none takes a write of its own."""
    await add(store)
    await process.work()
    await settled(store)
    clock.advance(MINUTE_MS / 1_000)
    await process.work()
    await process.stop()
    receiver.taken()
    backend.execute(RENEW.sqlite if backend.exact_versions else RENEW.postgres)
    backend.execute("UPDATE webhooks SET after_transaction = 0")
    await add(store)
    there = backend.open()
    went_on: list[object] = []
    go_on = there.deliverers.go_on

    async def noted(*arguments: Any) -> Any:
        went_on.append(arguments)
        return await go_on(*arguments)

    monkeypatch.setattr(there.deliverers, "go_on", noted)
    with capture_logs() as lines:
        await Process(there, sender, clock).work()
    assert receiver.taken() == [(await feed(store))[-1]] * _MANY
    assert went_on == []
    assert [line for line in lines if line["event"] == "events left out"] == []
