"""Webhooks in tests: a receiver on loopback, and processes that deliver by a steered clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from petstore.background import sending
from petstore.background.deliverer import Deliverer
from petstore.background.sending import Sender
from petstore.core.events import EventQuery, read_types
from petstore.core.limits.plans import FREE, Plan
from petstore.core.pets import NewPet
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import DeliveryAttempt, NewWebhook, WebhookHealth, mint
from petstore.storage.store import Store
from petstore.transactions.store import Repositories
from tests.storage.contract.test_events import all_after, settled
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.waiting import PATIENCE_SECONDS

INT64_MAX = 2**63 - 1
_OF_PETS = read_types(["pet.*"])


class Got(msgspec.Struct, frozen=True):
    """A request that a receiver has got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event


Answer = Callable[[Got], Awaitable[web.Response]]


def answers(status: int, **headers: str) -> Answer:
    """An answer that is always the same; names of headers with `_` for `-`."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(_: Got) -> web.Response:
        return web.Response(status=status, headers=fields)

    return answer


class Gate:
    """An answer that waits until the test opens it."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[int]] = []

    async def __call__(self, _: Got) -> web.Response:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return web.Response(status=await self.waiting[-1])

    def open(self, status: int = 204) -> None:
        for each in self.waiting:
            if not each.done():
                each.set_result(status)
        self.waiting.clear()


class Receiver:
    """Whatever it gets is in `got`, and answered by `answer`."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answer: Answer = answers(204)
        self.port = 0
        self.handling: set[asyncio.Task[Any]] = set()

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def handle(self, request: web.Request) -> web.Response:
        got = Got(
            request.path, {name.lower(): of for name, of in request.headers.items()}, await request.read()
        )
        self.got.append(got)
        task = asyncio.current_task()
        assert task is not None
        self.handling.add(task)
        try:
            return await self.answer(got)
        finally:
            self.handling.discard(task)

    def taken(self) -> list[str]:
        """The ids of what came since the last call."""
        ids = [got.event["id"] for got in self.got]
        self.got.clear()
        return ids

    def types(self, path: str | None = None) -> list[str]:
        return [got.event["type"] for got in self.got if path in (None, got.path)]


@asynccontextmanager
async def opened_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", receiver.handle)
    runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.port = runner.addresses[0][1]
        yield receiver
    finally:
        for task in receiver.handling:
            task.cancel()
        await runner.cleanup()


class Recorder(Sender):
    """The real one; `began` has the ids of events in the order in which their attempts begin."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.began: list[str] = []
        self.under_way = self.most_under_way = 0

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> sending.Answer:
        self.began.append(headers["webhook-id"])
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await super().send(url, body, headers)
        finally:
            self.under_way -= 1


class Process:
    """A process that delivers, without its loop: `work` looks until there is nothing to do at this moment."""

    def __init__(
        self, store: Repositories, sender: Sender, clock: ManualClock, cipher: SecretsCipher | None = None
    ) -> None:
        self.deliverer = Deliverer(store, sender, cipher or SecretsCipher(), clock, is_alone=False)
        self._store, self.sender, self.clock = store, sender, clock

    async def poll(self) -> bool:
        """One poll, of all that is written."""
        await settled(self._store)  # type: ignore[arg-type]
        return await self.deliverer.poll()

    async def work(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                end = (await settled(self._store)).position  # type: ignore[arg-type]
                await self.deliverer.poll()
                polled_to = self.deliverer._polled_to
                if tasks := [each._task for each in self._all() if each._task is not None]:
                    await asyncio.wait(tasks)
                elif polled_to is None or polled_to.position >= end:
                    return

    async def wait_until(self, at_ms: int) -> None:
        """Go on to a moment."""
        self.clock.ms = at_ms
        await self.work()

    async def stop(self) -> None:
        """Stop as `run` does at its end."""
        await self.deliverer._close()

    async def die(self) -> None:
        """Nothing is noted, and nothing released."""
        tasks = [each._task for each in self._all() if each._task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def health(self, webhook_id: int) -> WebhookHealth:
        """How it does, as far as the process knows."""
        return self.deliverer._queues[webhook_id]._runner.health

    @property
    def has(self) -> set[int]:
        """The webhooks that are its own."""
        return set(self.deliverer._queues)

    def _all(self) -> list[Any]:
        return [*self.deliverer._queues.values(), *self.deliverer._leaving]


async def account(store: Store, name: str, plan: Plan = FREE) -> int:
    """Another account; its id, which is its key's where each account has one."""
    added = await store.accounts.add(name, plan, ACTOR)
    await store.keys.issue(name, "test", ACTOR)
    return added.id


async def webhook(
    store: Store, account_id: int, url: str, *types: str, cipher: SecretsCipher | None = None
) -> int:
    """Another webhook; its id."""
    new = NewWebhook(url, types or ("*",))
    secrets = (cipher or SecretsCipher()).encrypt([mint()])
    return (await store.webhooks.create(account_id, account_id, new, secrets, ACTOR))[0].id


async def attempts(store: Store, webhook_id: int) -> list[DeliveryAttempt]:
    """All that are kept, oldest first."""
    return (await store.deliveries.attempts(webhook_id, 10_000, INT64_MAX)).attempts[::-1]


async def add(store: Store, count: int = 1) -> None:
    """Animals."""
    for _ in range(count):
        await store.pets.add(NewPet("Rex", 1), ACTOR)


async def feed(store: Store) -> list[str]:
    """The ids of the events of animals."""
    return [event.id for event in await all_after(store, EventQuery(100, None, _OF_PETS))]
