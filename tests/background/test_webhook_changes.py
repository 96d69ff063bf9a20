"""Changes of webhooks while they are delivered: each reaches the process that has them, nothing is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import web

from petstore.background.delivery_attempts import AttemptSlots
from petstore.core.durations import HOUR_MS, MINUTE_MS, SECOND_MS
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import Webhook, WebhookChange, mint
from petstore.storage.store import Store
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, of_each_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, lose
from tests.support.waiting import until
from tests.support.webhooks import Gate, Got, Process, Receiver, add, answers, attempts, feed, webhook


async def change(store: Store, **members: Any) -> None:
    await store.webhooks.change(1, WebhookChange(**members), ACTOR)


async def gate_for(store: Store, process: Process, receiver: Receiver, count: int = 1) -> Gate:
    """Add `count` animals and return once their first attempts have begun; they wait for their answers."""
    gate = receiver.answer = Gate()
    await add(store, count)
    await process.poll()
    await until(lambda: len(gate.waiting) == count)
    return gate


async def restart_deliveries(store: Store) -> None:
    await change(store, enabled=False)
    await change(store, enabled=True)


class TestChanges:
    """A webhook changes that a process has read."""

    async def test_a_bookmark_that_is_moved_back_while_tries_run(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """What they note is void, also when the same process goes on with the webhook."""
        start = await store.events.newest()
        await add(store, 3)
        await process.work()
        receiver.taken()
        gate = await gate_for(store, process, receiver, 3)
        await change(store, after=str(start))
        await process.poll()
        receiver.answer = answers(204)
        gate.open()
        await process.work()
        assert receiver.taken()[3:] == await feed(store)

    async def test_a_bookmark_that_is_moved_while_nothing_runs(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """`after` sends again, and `now` leaves out."""
        start = await store.events.newest()
        await add(store, 3)
        await process.work()
        ids = await feed(store)
        assert receiver.taken() == ids
        await change(store, after=str(start))
        await process.work()
        assert sorted(receiver.taken()) == sorted(ids)
        await add(store, 3)
        await settled(store)
        await change(store, after="now")
        await process.work()
        assert receiver.taken() == []
        await add(store)
        await process.work()
        assert receiver.taken() == (await feed(store))[-1:]

    async def test_an_end_and_a_beginning_between_two_looks(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """One that was down begins anew."""
        receiver.answer = answers(500)
        await add(store, 25)
        await process.work()
        assert process.health(1).is_down
        receiver.answer = answers(204)
        receiver.taken()
        await restart_deliveries(store)
        await process.work()
        assert set((await feed(store))[20:]) <= set(receiver.taken())

    async def test_more_types_are_those_of_every_event_after_the_change(
        self,
        store: Store,
        process: Process,
        receiver: Receiver,
        hook: Webhook,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It holds for a webhook that is behind an event of the former types, which is read before the
        process learns of the change."""
        await process.work()
        await add(store)
        await store.categories.name(1, "Dogs", ACTOR)
        page = store.events.page

        async def late(query: Any) -> Any:
            monkeypatch.undo()
            await change(store, types=("pet.*", "category.*"))
            await store.categories.name(1, "Cats", ACTOR)
            await add(store)
            return await page(query)

        monkeypatch.setattr(store.events, "page", late)
        await process.work()
        assert "Cats" in [got.event["data"].get("name") for got in receiver.got]

    async def test_a_slow_one_that_ends_holds_up_nobody(
        self, store: Store, process: Process, receiver: Receiver, hook: Webhook
    ) -> None:
        """The last try may take long; enabled again meanwhile the webhook begins after that."""
        await webhook(store, 1, receiver.url("/quick"), "pet.*")
        gate = Gate()

        async def answer(got: Got) -> web.Response:
            return await gate(got) if got.path == "/hook" else web.Response()

        receiver.answer = answer
        await add(store)
        await process.poll()
        await until(lambda: len(gate.waiting) == 1)
        await change(store, enabled=False)
        await process.poll()
        await change(store, enabled=True)
        await add(store)
        await process.poll()
        await until(lambda: [got.path for got in receiver.got].count("/quick") == 2)
        assert process.has == {2}
        gate.open()
        receiver.answer = answers(204)
        receiver.got.clear()
        await process.work()
        assert [got.event["id"] for got in receiver.got] == await feed(store)

    async def test_a_webhook_begins_at_once_when_there_was_none(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """However soon after the last one was removed."""
        await process.work()
        await store.webhooks.remove(1, ACTOR)
        await process.work()
        assert not await process.poll()
        await webhook(store, 1, receiver.url("/second"), "pet.*")
        await add(store)
        await process.work()
        assert [got.path for got in receiver.got] == ["/second"]

    @of_each_store
    async def test_a_restored_store_goes_on_at_the_restore(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver, clock: ManualClock
    ) -> None:
        """What is under way then moves no bookmark; what failed before keeps its identity."""
        await webhook(store, 1, receiver.url("/quiet"), "order.*", "store.*")
        receiver.answer = answers(500)
        await add(store)
        await process.work()
        (failed,) = receiver.taken()
        gate = await gate_for(store, process, receiver)
        await store.events.note_restore(ACTOR)
        await add(store)
        await process.poll()
        receiver.answer = answers(204)
        gate.open()
        receiver.got.clear()
        await process.work()
        assert receiver.types("/quiet") == ["store.restored"]
        ids = await feed(store)
        assert [got.event["id"] for got in receiver.got if got.path == "/hook"] == ids[-1:]
        receiver.got.clear()
        await process.wait_until(clock.ms + 10 * SECOND_MS)
        assert receiver.taken() == [failed]
        await add(store)
        await process.wait_until(clock.ms + 2 * MINUTE_MS)
        assert receiver.taken() == (await feed(store))[-1:]


class TestSlots:
    """A try waits for its slot, since others are under way."""

    @pytest.fixture
    async def gate(self, store: Store, hook: Webhook, process: Process, receiver: Receiver) -> Gate:
        """There is one slot, and a try of another webhook has it; one of the first webhook waits."""
        deliverer = process.deliverer
        deliverer._tools = msgspec.structs.replace(deliverer._tools, slots=AttemptSlots(1, 1))
        gate = receiver.answer = Gate()
        await webhook(store, 1, receiver.url("/other"), "category.*")
        await process.work()
        await store.categories.name(1, "Dogs", ACTOR)
        await process.poll()
        await until(lambda: len(gate.waiting) == 1)
        await add(store)
        await process.poll()
        await until(lambda: bool(deliverer._queues[1]._under_way))
        receiver.answer = answers(204)
        return gate

    @pytest.mark.parametrize("ends", ["removed", "disabled", "suspended"])
    async def test_it_is_not_sent_after_the_end(
        self, store: Store, gate: Gate, process: Process, receiver: Receiver, ends: str
    ) -> None:
        """The end is the webhook's, its deliveries' or its account's."""
        if ends == "removed":
            await store.webhooks.remove(1, ACTOR)
        elif ends == "disabled":
            await change(store, enabled=False)
        else:
            await store.accounts.suspend("shop", ACTOR)
        await process.poll()
        gate.open()
        await process.work()
        assert [got.path for got in receiver.got] == ["/other"]

    async def test_it_is_sent_to_the_new_url_alone(
        self, store: Store, gate: Gate, process: Process, receiver: Receiver
    ) -> None:
        """Nothing comes to the former one after the change."""
        await change(store, url=receiver.url("/new"))
        await process.poll()
        gate.open()
        await process.work()
        assert [got.path for got in receiver.got] == ["/other", "/new"]

    async def test_it_is_signed_by_a_new_secret_too(
        self, store: Store, gate: Gate, process: Process, receiver: Receiver
    ) -> None:
        """One that was made while it waited."""
        secrets = [mint(), mint()]
        await store.webhooks.rotate(1, ACTOR, lambda _, __: SecretsCipher().encrypt(secrets))
        await process.poll()
        gate.open()
        await process.work()
        assert len(receiver.got[-1].headers["webhook-signature"].split()) == 2


class TestReading:
    """Events are read while others come."""

    @of_each_store
    async def test_what_is_being_read_is_not_passed_by(
        self,
        store: Store,
        backend: SharedData,
        hook: Webhook,
        process: Process,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Events that come meanwhile, and a poll without any for it, move none past those of the page."""
        await add(store)
        await process.work()
        receiver.taken()
        page, is_read = store.events.page, asyncio.Event()

        async def slow(query: Any) -> Any:
            found = await page(query)
            await is_read.wait()
            return found

        monkeypatch.setattr(store.events, "page", slow)
        for happens in (add(store), store.categories.name(1, "Dogs", ACTOR), add(store)):
            await happens
            await process.poll()
        await store.deliveries.test(1, ACTOR, 1)
        await process.poll()
        gate = Gate()

        async def answer(got: Got) -> web.Response:
            return web.Response() if got.event["type"] == "webhook.test" else await gate(got)

        receiver.answer = answer
        process.clock.advance(2)
        is_read.set()
        noted = "SELECT count(*) FROM webhook_tries"
        await until(lambda: len(gate.waiting) > 0 and backend.execute(noted) == [(2,)])
        monkeypatch.undo()
        await process.die()
        receiver.answer = answers(204)
        receiver.got.clear()
        await store.deliverers.release(process.deliverer._owner)
        await Process(store, process.sender, process.clock).work()
        assert set((await feed(store))[1:]) <= set(receiver.taken())

    @of_each_store
    async def test_who_is_ahead_of_a_poll_is_not_moved_back(
        self,
        store: Store,
        hook: Webhook,
        process: Process,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """An event that came after the poll, and was delivered before that ended, comes once."""
        gate = await gate_for(store, process, receiver)
        claim = store.deliverers.claim

        async def slow(*arguments: Any, **options: Any) -> None:
            await add(store)
            await settled(store)
            receiver.answer = answers(204)
            gate.open()
            await until(lambda: all(each.is_idle for each in process.deliverer._queues.values()))
            await claim(*arguments, **options)

        monkeypatch.setattr(store.deliverers, "claim", slow)
        process.clock.advance(61)
        await process.poll()
        monkeypatch.undo()
        await process.work()
        assert receiver.taken() == await feed(store)

    @of_each_store
    async def test_what_was_read_ends_before_a_gap_is_left(
        self, store: Store, backend: SharedData, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """A removal of old entries overtakes a slow receiver: it gets what was read, then what is kept."""
        gate = await gate_for(store, process, receiver)
        await store.categories.name(1, "Dogs", ACTOR)
        lose(backend.execute, (await settled(store)).position)
        await add(store)
        await settled(store)
        await process.poll()
        receiver.answer = answers(204)
        gate.open()
        await process.work()
        assert [got.event["data"]["id"] for got in receiver.got] == [1, 2]
        assert [each.is_success for each in await attempts(store, 1)] == [True, True]


class TestOutOfTurn:
    """Tests, and events that are sent again."""

    @of_each_store
    async def test_a_test_comes_at_once_and_once(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """A test goes once to its webhook alone, before a backlog ends, whatever types the webhook has."""
        await webhook(store, 1, receiver.url("/other"))
        event_id = await store.deliveries.test(1, ACTOR, 1)
        await process.work()
        (got,) = [got for got in receiver.got if got.event["type"] == "webhook.test"]
        assert (got.path, got.event["id"]) == ("/hook", event_id)
        assert got.event["data"] == {"id": 1}
        found = await store.deliveries.first_attempt(1, event_id)
        assert found is not None
        assert found.is_success

    async def test_one_that_is_asked_for_while_its_try_runs_is_not_put_off(
        self, store: Store, backend: SharedData, hook: Webhook, process: Process, receiver: Receiver
    ) -> None:
        """The try fails, and its repetition would come later."""
        gate = await gate_for(store, process, receiver)
        (event_id,) = await feed(store)
        await store.deliveries.redeliver(1, event_id, ACTOR)
        await store.webhooks.rotate(1, ACTOR, lambda secrets, _: secrets)
        receiver.answer = answers(204)
        gate.open(500)
        await process.work()
        assert receiver.taken() == [event_id, event_id]
        assert backend.execute("SELECT 1 FROM webhook_repetitions") == []

    async def test_what_was_noted_while_rows_were_read_comes_once(
        self,
        store: Store,
        hook: Webhook,
        process: Process,
        receiver: Receiver,
        clock: ManualClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A row that is over when it is read, and one that is not there yet."""
        receiver.answer = answers(500)
        await add(store)
        await process.work()
        receiver.taken()
        gate = receiver.answer = Gate()
        clock.advance(10)
        await process.poll()
        await until(lambda: len(gate.waiting) == 1)
        owned = store.deliverers.owned

        async def late(owner: str) -> Any:
            rows = await owned(owner)
            gate.open()
            await until(lambda: process.deliverer._queues[1].is_idle)
            return rows

        monkeypatch.setattr(store.deliverers, "owned", late)
        await store.webhooks.rotate(1, ACTOR, lambda secrets, _: secrets)
        await process.poll()
        monkeypatch.undo()
        receiver.answer = answers(204)
        await process.wait_until(clock.ms + HOUR_MS)
        assert len(receiver.taken()) == 1
