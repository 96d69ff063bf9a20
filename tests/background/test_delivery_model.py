"""Webhooks after any history of failures, delays, changes, deaths and takeovers: what is promised holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict
from petstore.core.events import EventQuery, read_event_id
from petstore.core.webhooks import REPETITIONS_MS, WebhookChange, entry_types_of
from petstore.storage.store import Store
from tests.storage.contract.test_events import all_after, settled
from tests.support.backends import SharedData, of_each_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.webhooks import Got, Process, Receiver, Recorder, account, add, webhook

_KINDS = ("works", "works", "fails", "hangs", "is gone", "asks for time")
_numbers = count(1)
_moves = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 9)),
    st.tuples(st.just("answer"), st.lists(st.sampled_from(_KINDS), min_size=1, max_size=4)),
    st.tuples(st.just("poll"), st.integers(0, 1)),
    st.tuples(st.just("poll"), st.integers(0, 1)),
    st.tuples(st.just("open"), st.sampled_from([204, 500, 410])),
    st.tuples(st.just("wait"), st.sampled_from([1, 11, 40, 3_600, 40_000])),
    st.tuples(st.just("die"), st.integers(0, 1)),
    st.tuples(st.just("stop"), st.integers(0, 1)),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("repeat"), st.none()),
    st.tuples(st.just("redeliver"), st.integers(0, 9)),
)


class Run:
    """A webhook, two processes that may deliver it, and a receiver that does what it is told."""

    def __init__(
        self, backend: SharedData, store: Store, receiver: Receiver, sender: Recorder, clock: ManualClock
    ) -> None:
        self.backend, self.store, self.sender, self.clock = backend, store, sender, clock
        self.path = f"/{next(_numbers)}"
        self.receiver = receiver
        self.kinds = ["works"]
        self.hanging: list[asyncio.Future[int]] = []
        self.delivered: set[str] = set()
        self.failed: Counter[str] = Counter()
        self.processes = [self.process(), self.process()]

    def process(self) -> Process:
        return Process(self.store, self.sender, self.clock)

    async def begin(self) -> None:
        self.receiver.answer = self.answer
        self.sender.began.clear()
        self.name = f"shop{self.path[1:]}"
        self.account_id = await account(self.store, self.name)
        self.start = await settled(self.store)
        self.id = await webhook(self.store, self.account_id, self.receiver.url(self.path))

    async def answer(self, got: Got) -> web.Response:
        if got.path != self.path:
            return web.Response()  # of a run before
        kind, status, headers = self.kinds[0], 204, {}
        self.kinds = [*self.kinds[1:], kind]
        if kind == "hangs":
            self.hanging.append(asyncio.get_running_loop().create_future())
            status = await self.hanging[-1]
        elif kind != "works":
            status = {"fails": 500, "is gone": 410, "asks for time": 429}[kind]
            headers = {"Retry-After": "30"}
        if status == 204:
            self.delivered.add(got.event["id"])
        else:
            self.failed[got.event["id"]] += 1
        return web.Response(status=status, headers=headers)

    def open(self, status: int) -> None:
        for each in self.hanging:
            if not each.done():
                each.set_result(status)
        self.hanging.clear()

    async def move(self, name: str, value: object) -> None:
        match name, value:
            case "add", int(number):
                await add(self.store, number)
                await self.store.keys.issue("other", "test", ACTOR)
            case "answer", list(kinds):
                self.kinds = kinds
            case "open", int(status):
                self.open(status)
            case "wait", int(seconds):
                self.clock.advance(seconds)
            case "die" | "stop", int(index):
                self.open(500)
                await getattr(self.processes[index], name)()
                self.processes[index] = self.process()
            case "restart", _:
                for is_enabled in (False, True):
                    await self.change(WebhookChange(enabled=is_enabled))
            case "repeat", _:
                await self.change(WebhookChange(after=str(self.start)))
            case "redeliver", int(index) if self.sender.began:
                event_id = self.sender.began[index % len(self.sender.began)]
                with suppress(Conflict):
                    await self.store.deliveries.redeliver(self.id, event_id, ACTOR)
            case "poll", int(index):
                await self.processes[index].poll()
                for _ in range(40):
                    await asyncio.sleep(0)

    async def change(self, change: WebhookChange) -> None:
        await self.store.webhooks.change(self.id, change, ACTOR)

    async def check(self) -> None:
        """What the bookmark has passed was delivered, is a row, or has failed to its end; first attempts are
        in order."""
        rows = self.backend.execute(
            "SELECT w.after_id, r.entry_id FROM webhooks w"
            f" LEFT JOIN webhook_repetitions r ON r.webhook_id = w.id WHERE w.id = {self.id}"
        )
        position, repeated = rows[0][0], {row[1] for row in rows}
        ids = await self.feed()
        numbers = {event_id: named[1] for event_id in ids if (named := read_event_id(event_id))}
        for event_id, number in numbers.items():
            is_over = event_id in self.delivered or self.failed[event_id] > len(REPETITIONS_MS)
            assert number > position or number in repeated or is_over, event_id  # type: ignore[operator]
        # Two transactions beside each other may number their entries against the order of the feed.
        assert list(dict.fromkeys(self.sender.began)) == [each for each in ids if each in self.sender.began]

    async def feed(self) -> list[str]:
        query = EventQuery(100, self.account_id, entry_types_of(["*"]), self.start)
        return [event.id for event in await all_after(self.store, query)]

    async def end(self) -> None:
        """Everything arrives once the receiver works, and nothing else has."""
        self.kinds = ["works"]
        self.open(204)
        await asyncio.gather(*(each.work() for each in self.processes))  # a 410 may be noted
        await self.change(WebhookChange(enabled=True))
        self.clock.advance(60)
        await asyncio.gather(*(each.work() for each in self.processes))
        self.clock.ms += 2 * DAY_MS
        await asyncio.gather(*(each.work() for each in self.processes))
        await self.check()
        ids = set(await self.feed())
        assert set(self.sender.began) <= ids
        for event_id in ids - self.delivered:
            assert self.failed[event_id] > len(REPETITIONS_MS), event_id

    async def leave(self) -> None:
        """Nothing of it is left for the next run."""
        self.open(204)
        for each in self.processes:
            await each.stop()
        await self.store.webhooks.remove(self.id, ACTOR)


@pytest.fixture
async def other(store: Store) -> None:
    """An account whose keys are nobody else's."""
    await account(store, "other")


@of_each_store
@pytest.mark.slow
@given(st.lists(_moves, min_size=5, max_size=18))
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_every_event_arrives_and_none_is_passed_by(
    backend: SharedData,
    store: Store,
    other: None,
    receiver: Receiver,
    sender: Recorder,
    clock: ManualClock,
    moves: list[tuple[str, object]],
) -> None:
    """Each event of the account, and of no other, arrives at least once, first attempts in order; the
    bookmark in the store passes only events that are delivered or to be repeated."""
    run = Run(backend, store, receiver, sender, clock)
    await run.begin()
    try:
        for name, value in moves:
            await run.move(name, value)
            if name in {"poll", "open", "die", "stop"}:
                await run.check()
        await run.end()
    finally:
        await run.leave()
