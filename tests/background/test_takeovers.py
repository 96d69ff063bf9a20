"""Several processes, stops, deaths, outages and keys of webhooks: nothing is lost, and little comes twice."""

from __future__ import annotations

import asyncio
from itertools import cycle, product
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiohttp import web
from cryptography.fernet import Fernet
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from petstore.background import deliverer, delivery_queue
from petstore.background.sending import Answer
from petstore.core.clock import SystemClock
from petstore.core.durations import DAY_MS, MINUTE_MS, SECOND_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.limits.plans import PRO
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import Webhook, renewed
from petstore.storage.store import Store
from tests.support.backends import SharedData, of_each_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.waiting import until
from tests.support.webhooks import (
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


class Flaky:
    """A part of a store, whose call number `fails_at` fails: before its work, or `is_late`, after it."""

    def __init__(self, part: object) -> None:
        self._part = part
        self.calls = 0
        self.fails_at = -1
        self.is_late = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            fails = self.calls == self.fails_at
            if fails and not self.is_late:
                raise StoreUnavailable("out of order")
            result = await method(*arguments, **options)
            if fails:
                raise StoreUnavailable("out of order")
            return result

        return call


class TestSharing:
    """Processes on the same store."""

    @of_each_store
    async def test_two_share_and_the_other_goes_on_when_one_dies(
        self, backend: SharedData, sender: Recorder, receiver: Receiver, clock: ManualClock
    ) -> None:
        """A deliverer takes over a dead one's webhooks in 40 s and repeats its attempts of unknown result."""
        stores = backend.open(), backend.open()
        one, other = (Process(each, sender, clock) for each in stores)
        await account(stores[0], "shop")
        for number in (1, 2):
            await webhook(stores[0], 1, receiver.url(f"/{number}"), "pet.*")
        await one.work()
        assert one.has == {1, 2}
        await other.work()
        await one.wait_until(clock.ms + 11 * SECOND_MS)
        await other.work()
        assert (len(one.has), len(other.has)) == (1, 1)
        await add(stores[0], 3)
        await asyncio.gather(one.work(), other.work())
        ids = await feed(stores[0])
        assert sorted(receiver.taken()) == sorted(ids * 2)
        gate = receiver.answer = Gate()
        await add(stores[0], 20)
        await one.poll()
        await until(lambda: len(gate.waiting) > 2)
        gate.open()
        await until(lambda: len(gate.waiting) > 2)
        await one.die()
        receiver.answer = answers(204)
        gate.open()
        await other.wait_until(clock.ms + 29 * SECOND_MS)
        assert len(other.has) == 1
        await other.wait_until(clock.ms + 11 * SECOND_MS)
        assert other.has == {1, 2}
        for path in ("/1", "/2"):
            came = [got.event["id"] for got in receiver.got if got.path == path]
            assert set(came) == set((await feed(stores[0]))[3:])

    async def test_a_stop_notes_what_ends_and_gives_the_webhooks_away(
        self,
        backend: SharedData,
        hook: Webhook,
        sender: Recorder,
        receiver: Receiver,
        clock: ManualClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Another one goes on at once: what had been answered does not come again, what hangs does."""
        store = backend.open()
        one, other = Process(store, sender, clock), Process(backend.open(), sender, clock)
        await add(store, 10)
        await one.work()
        monkeypatch.setattr(deliverer, "_STOP_SECONDS", 0.0)
        gate = Gate()
        hangs = asyncio.get_running_loop().create_future()

        async def answer(got: Got) -> web.Response:
            if got.event["data"]["id"] == 13:
                await hangs
            return await gate(got)

        receiver.answer = answer
        receiver.taken()
        await add(store, 10)
        await one.poll()
        await until(lambda: len(gate.waiting) == 7)
        under_way = list(one.deliverer._queues[1]._under_way)
        gate.open()
        await until(lambda: sum(task.done() for task in under_way) == 7)
        await one.stop()
        receiver.answer = answers(204)
        receiver.got.clear()
        hangs.set_result(None)
        await other.work()
        ids = await feed(store)
        assert receiver.taken()[0] == ids[12]
        assert len({each.event_id for each in await attempts(store, 1)}) == 20


async def test_the_loop_survives_an_outage(
    store: Store,
    hook: Webhook,
    sender: Recorder,
    receiver: Receiver,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each call to the store fails once, before its work or after it: all arrives, first tries in order."""
    monkeypatch.setattr(delivery_queue, "_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(deliverer, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(deliverer, "POLL_SECONDS", 0.0)
    parts = Flaky(store.deliverers), Flaky(store.events)
    flaky = SimpleNamespace(deliverers=parts[0], events=parts[1])
    running = asyncio.create_task(
        deliverer.Deliverer(flaky, sender, SecretsCipher(), clock, is_alone=False).run()  # type: ignore[arg-type]
    )
    expected = 0
    for part, is_late, ahead in product(parts, (False, True), range(1, 5)):
        part.is_late, part.fails_at = is_late, part.calls + ahead
        while part.calls < part.fails_at:
            await add(store)
            clock.advance(11)
            expected += 1
            await until(lambda: len(set(sender.began)) == expected)  # noqa: B023
    running.cancel()
    await asyncio.wait([running])
    assert list(dict.fromkeys(sender.began)) == await feed(store)
    assert len(sender.began) < 2 * expected


async def test_a_thousand_webhooks_that_want_nothing_cost_nothing(
    store: Store, backend: SharedData, hook: Webhook, sender: Recorder, clock: ManualClock
) -> None:
    """A poll is one statement, whatever happens in the store; three more each 10 s, one more each minute."""
    backend.execute(
        "INSERT INTO webhooks (account_id, key_id, url, types, description, created_at_ms, secrets,"
        " data_set, after_transaction, after_id) SELECT account_id, key_id, url, 'order.created',"
        " description, created_at_ms, secrets, data_set, after_transaction, after_id FROM webhooks,"
        " (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) SELECT i FROM n) m"
    )
    backend.execute("UPDATE webhooks SET types = 'order.created'")
    parts = Flaky(store.deliverers), Flaky(store.events)
    flaky: Any = SimpleNamespace(deliverers=parts[0], events=parts[1], journal=store.journal)

    def calls() -> tuple[int, int]:
        found = parts[0].calls, parts[1].calls
        parts[0].calls = parts[1].calls = 0
        return found

    process = deliverer.Deliverer(flaky, sender, SecretsCipher(), clock, is_alone=False)
    await process.poll()
    await until(lambda: all(each.is_idle for each in process._queues.values()))
    assert len(process._queues) == 1_000
    await process.poll()
    calls()
    for _ in range(5):
        await add(store)
        await process.poll()
    assert calls() == (0, 5)
    clock.advance(10)
    await process.poll()
    assert calls() == (2, 2)
    clock.advance(60)
    await process.poll()
    await process.poll()
    assert calls() == (3, 3)
    assert len(backend.execute("SELECT DISTINCT after_id FROM webhooks")) == 1
    clock.advance(60)
    await process.poll()
    assert calls() == (2, 2)


class TestSecrets:
    """What a receiver verifies with the library of Standard Webhooks."""

    async def test_a_rotation_refuses_no_receiver(
        self, store: Store, hook: Webhook, process: Process, receiver: Receiver, clock: ManualClock
    ) -> None:
        """Whichever of the two secrets it has, for 24 hours; then the new one alone."""
        cipher = SecretsCipher()
        clock.ms = SystemClock().now_ms()  # as the library's
        (old,) = cipher.decrypt((await store.webhooks.rotate(1, ACTOR, lambda secrets, _: secrets))[1])
        await add(store)
        await process.work()
        rotated = await store.webhooks.rotate(
            1, ACTOR, lambda secrets, now_ms: cipher.encrypt(renewed(cipher.decrypt(secrets), now_ms))
        )
        new = cipher.decrypt(rotated[1])[0]
        await add(store)
        await process.work()
        for got in receiver.got:
            Verifier(old.text).verify(got.body, got.headers)
        Verifier(new.text).verify(receiver.got[1].body, receiver.got[1].headers)
        got = receiver.got[1]
        stranger = Verifier("whsec_" + Fernet.generate_key().decode().replace("-", "+").replace("_", "/"))
        for verifier, body, headers in [
            (stranger, got.body, got.headers),
            (Verifier(new.text), receiver.got[0].body, receiver.got[0].headers),
            (Verifier(new.text), got.body.replace(b"Rex", b"Max"), got.headers),
            (Verifier(new.text), got.body, {**got.headers, "webhook-id": "evt_000000000000_1"}),
        ]:
            with pytest.raises(WebhookVerificationError):
                verifier.verify(body, headers)
        clock.advance(86_401)
        await add(store)
        await process.work()
        assert receiver.got[2].headers["webhook-signature"].count("v1,") == 1
        with pytest.raises(WebhookVerificationError):
            Verifier(new.text).verify(receiver.got[2].body, receiver.got[2].headers)

    async def test_what_is_encrypted_by_another_key_waits(
        self, store: Store, sender: Recorder, receiver: Receiver, clock: ManualClock
    ) -> None:
        """The owner sees why, nothing counts against the webhook, and nothing is lost, however long it takes;
        with the key all arrives in order."""
        old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
        await account(store, "shop")
        await webhook(store, 1, receiver.url(), "pet.*", cipher=SecretsCipher([old]))
        wrong = Process(store, sender, clock, SecretsCipher([new]))
        await add(store, 3)
        await wrong.work()
        for _ in range(30):
            await wrong.wait_until(clock.ms + 5 * DAY_MS)
        assert receiver.got == []
        assert (await store.webhooks.get(1)).disabled is None
        (*_, last) = await attempts(store, 1)
        assert last.fault == (
            "The secrets of this webhook are sealed by a key that PETSTORE_SECRETS_KEY does not have."
        )
        await wrong.stop()
        right = Process(store, sender, clock, SecretsCipher([new, old]))
        await right.wait_until(clock.ms + 5 * MINUTE_MS)
        assert receiver.taken() == await feed(store)

    async def test_many_that_are_encrypted_are_not_tried_at_one_moment(
        self, store: Store, sender: Recorder, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody else would be delivered to meanwhile. After a restart, too, they come one by one."""
        await account(store, "shop", PRO)
        for _ in range(5):
            await webhook(
                store,
                1,
                "http://127.0.0.1:9/",
                "pet.*",
                cipher=SecretsCipher([Fernet.generate_key().decode()]),
            )
        shares = cycle(range(1, 6))
        monkeypatch.setattr(
            "petstore.background.delivery_attempts.random.uniform", lambda _, most: most * next(shares) / 5
        )
        for cipher in (SecretsCipher([Fernet.generate_key().decode()]), SecretsCipher()):
            process = Process(store, sender, clock, cipher)
            before = len([1 for number in range(1, 6) for _ in await attempts(store, number)])
            await add(store)
            await process.work()
            for step in range(9):
                tried = len([1 for number in range(1, 6) for _ in await attempts(store, number)])
                assert tried - before == step
                await process.wait_until(clock.ms + MINUTE_MS)
            await process.stop()
            clock.advance(3_600)

    async def test_want_of_descriptors_counts_against_no_webhook(
        self,
        store: Store,
        process: Process,
        receiver: Receiver,
        clock: ManualClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """However long this service lacks them: then all arrives in order."""
        await account(store, "shop")
        await webhook(store, 1, receiver.url(), "pet.*")
        await add(store, 3)
        lacking = Answer(None, "This service lacks resources: Too many open files.", is_ours=True)
        with monkeypatch.context() as patched:
            patched.setattr(Recorder, "send", AsyncMock(return_value=lacking))
            await process.work()
            for _ in range(30):
                await process.wait_until(clock.ms + 5 * DAY_MS)
        hook = await store.webhooks.get(1)
        assert (hook.disabled, hook.failing_since_ms) == (None, None)
        await process.wait_until(clock.ms + 5 * MINUTE_MS)
        assert receiver.taken() == await feed(store)
