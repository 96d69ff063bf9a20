"""Leases on webhooks in both stores, what their owners note, and where webhooks go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from petstore.core.deliverers import OwnedWebhook, Settled
from petstore.core.events import Bookmark, Position, read_event_id
from petstore.core.webhooks import DeliveryAttempt, DisabledReason, Repetition, WebhookChange, WebhookHealth
from petstore.storage.store import Store
from petstore.transactions.deliverers import REPETITIONS_READ
from petstore.transactions.script import Effect, Script
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, followed, lose
from tests.support.webhooks import INT64_MAX, account, add, attempts, feed, webhook

URL = "https://shop.example/hook"
NONE = "0" * 12, 1


@pytest.fixture(autouse=True)
async def _accounts(store: Store) -> None:
    for name in ("shop", "other", "third"):
        await account(store, name)


async def hooks(store: Store, count: int = 1) -> None:
    for at in range(count):
        await webhook(store, at % 3 + 1, URL)


async def claim(store: Store, owner: str, *idle: int, is_alone: bool = False) -> list[int]:
    """The ids of what it has then."""
    await store.deliverers.claim(owner, idle, is_alone=is_alone)
    return [hook.id for hook in (await store.deliverers.owned(owner)).webhooks]


async def mine(store: Store, owner: str = "a") -> OwnedWebhook:
    """The one that it has."""
    await claim(store, owner)
    (hook,) = (await store.deliverers.owned(owner)).webhooks
    return hook


def attempt_of(number: int, fault: str | None = None) -> DeliveryAttempt:
    return DeliveryAttempt(
        f"evt_{number}", "pet.created", number, 1, 500 if fault else 200, fault, "é \"'\\ ok"
    )


def settles(hook: OwnedWebhook, **members: object) -> Settled:
    """Nothing, but for these members."""
    return replace(Settled(hook.after, WebhookHealth(), [], [], []), **members)


class TestLeases:
    @through_pgbouncer_too
    async def test_shares_are_fair_and_only_idle_ones_are_given_back(self, store: Store) -> None:
        """One, two and three deliverers share; a busy webhook stays where it is until it is idle."""
        await hooks(store, 9)
        assert await claim(store, "a") == [*range(1, 10)]
        assert await claim(store, "b") == []
        assert await claim(store, "a") == [*range(1, 10)]
        assert await claim(store, "a", 2, 4) == [1, 3, 5, 6, 7, 8, 9]
        assert await claim(store, "b") == [2, 4]
        first, second = await claim(store, "a", 1, 3, 5, 6, 7, 8, 9), await claim(store, "b")
        assert (len(first), len(second)) == (5, 4)
        await claim(store, "c")
        first = await claim(store, "a", *first)
        second = await claim(store, "b", *second)
        third = await claim(store, "c")
        assert [len(each) for each in (first, second, third)] == [3, 3, 3]
        assert sorted(first + second + third) == [*range(1, 10)]

    async def test_what_another_one_has_is_not_given_back(self, store: Store) -> None:
        """Though it was idle here a moment ago: two would send its events."""
        await hooks(store, 3)
        await claim(store, "a")
        await claim(store, "b")
        assert await claim(store, "a", 1) == [2, 3]
        assert await claim(store, "b") == [1]
        await claim(store, "c")
        assert await claim(store, "a", 1) == [2, 3]
        assert [each.id for each in (await store.deliverers.owned("b")).webhooks] == [1]

    async def test_of_many_that_claim_at_once_each_has_another(self, backend: SharedData) -> None:
        """No webhook has two owners, and none is left."""
        stores = [backend.open() for _ in range(3)]
        await hooks(stores[0], 9)
        names = "abc"
        for _ in range(3):
            await asyncio.gather(*(claim(each, name) for each, name in zip(stores, names, strict=True)))
        owned = [each.id for name in names for each in (await stores[0].deliverers.owned(name)).webhooks]
        assert sorted(owned) == [*range(1, 10)]

    async def test_a_dead_ones_are_free_after_30_seconds(self, store: Store, clock: ManualClock) -> None:
        """Webhooks are free 30 s after a deliverer dies, not before; at once if it ends or clocks go back."""
        await hooks(store, 2)
        assert await claim(store, "a") == [1, 2]
        clock.advance(29)
        assert await claim(store, "b") == []
        clock.advance(1)
        assert await claim(store, "b") == [1, 2]
        assert await claim(store, "a") == []
        await store.deliverers.release("b")
        assert await claim(store, "a") == [1, 2]
        clock.advance(-3_600)
        assert await claim(store, "b") == [1, 2]

    async def test_no_write_waits_while_they_are_counted(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That is not part of a transaction, and of very many a few are taken at a time."""
        monkeypatch.setattr("petstore.transactions.deliverers._TAKEN_AT_A_TIME", 2)
        await hooks(store, 5)
        written: list[str] = []
        start = store.deliverers._database.start

        def noted(script: Script[Any]) -> Script[Any]:
            try:
                step = next(script)
                while True:
                    written.append(step[0].sqlite)
                    step = script.send((yield step))
            except StopIteration as end:
                return end.value

        def start_noted(script: Callable[[], Script[Any]], *effect: Effect) -> asyncio.Future[Any]:
            return start(lambda: noted(script()), *effect)

        monkeypatch.setattr(store.deliverers._database, "start", start_noted)
        assert await claim(store, "a") == [*range(1, 6)]
        assert [sql[:15] for sql in written if "webhooks" in sql] == ["UPDATE webhooks"] * 3
        written.clear()
        assert await claim(store, "a") == [*range(1, 6)]
        assert written
        assert not [sql for sql in written if "webhooks" in sql]

    async def test_one_that_is_alone_takes_all_at_once(self, store: Store) -> None:
        """A deliverer that is alone, as one that replaced another on a file, takes all webhooks at once."""
        await hooks(store, 2)
        assert await claim(store, "a") == [1, 2]
        assert await claim(store, "b", is_alone=True) == [1, 2]

    async def test_what_gets_nothing_is_nobodys(self, store: Store) -> None:
        """A disabled one, and those of suspended and closed accounts; resumed they are there again."""
        await hooks(store, 3)
        await store.webhooks.change(1, WebhookChange(enabled=False), ACTOR)
        await store.accounts.suspend("other", ACTOR)
        await store.accounts.close("third", ACTOR)
        assert await claim(store, "a") == []
        assert not await store.deliverers.is_needed()
        await store.accounts.resume("other", ACTOR)
        assert await store.deliverers.is_needed()
        await store.webhooks.change(1, WebhookChange(enabled=True), ACTOR)
        assert await claim(store, "a") == [1, 2]


class TestNotes:
    """The outcomes of attempts."""

    async def test_all_of_it_is_there(self, store: Store) -> None:
        """Bookmark, health, repetitions and attempts; and again what is over."""
        await hooks(store)
        hook = await mine(store)
        await add(store, 2)
        after, health = await settled(store), WebhookHealth(3, 5, 7)
        first, second = Repetition(9, *NONE, 1), Repetition(8, NONE[0], 2, 1)
        noted = [attempt_of(1), attempt_of(2, "It answered 500.")]
        settled_ = Settled(after, health, noted, [first, second], [])
        assert await store.deliverers.settle("a", hook, settled_)
        owned = await store.deliverers.owned("a")
        assert owned.webhooks == [replace(hook, after=after, health=health)]
        assert sorted(owned.repetitions) == [(1, second), (1, first)]
        assert await attempts(store, 1) == noted
        later = Repetition(20, *NONE, 2)
        assert await store.deliverers.settle(
            "a", hook, settles(hook, new_repetitions=[later], ended_repetitions=[first])
        )
        assert sorted((await store.deliverers.owned("a")).repetitions) == [(1, second), (1, later)]

    async def test_of_very_many_the_next_ones_are_read(self, store: Store) -> None:
        """Each webhook has its own: who asks for any number takes no memory, and nothing from others."""
        await hooks(store, 2)
        await claim(store, "a")
        first, second = (await store.deliverers.owned("a")).webhooks
        *many, late = (Repetition(at, "0" * 12, at) for at in range(1, REPETITIONS_READ + 7))
        for hook, again in ((first, many[::-1]), (second, [late])):
            for at in range(0, len(again), 100):
                settled_ = settles(hook, new_repetitions=again[at : at + 100])
                assert await store.deliverers.settle("a", hook, settled_)
        found = (await store.deliverers.owned("a")).repetitions
        assert sorted(found) == [*((1, each) for each in many[:REPETITIONS_READ]), (2, late)]

    @through_pgbouncer_too
    async def test_one_that_was_asked_for_meanwhile_stays(self, store: Store) -> None:
        """A repetition that was asked for meanwhile stays: none that is over or comes later puts it off."""
        await hooks(store)
        hook = await mine(store)
        await add(store)
        (event_id,) = await feed(store)
        named = read_event_id(event_id)
        assert named is not None
        old = Repetition(9, *named, 1)
        assert await store.deliverers.settle("a", hook, settles(hook, new_repetitions=[old]))
        await store.deliveries.redeliver(1, event_id, ACTOR)
        ((_, asked),) = (await store.deliverers.owned("a")).repetitions
        again = replace(old, at_ms=asked.at_ms + 99, tries=2)
        assert await store.deliverers.settle(
            "a", hook, settles(hook, new_repetitions=[again], ended_repetitions=[old])
        )
        assert (await store.deliverers.owned("a")).repetitions == [(1, asked)]
        assert await store.deliverers.settle("a", hook, settles(hook, ended_repetitions=[asked]))
        assert (await store.deliverers.owned("a")).repetitions == []

    @pytest.mark.parametrize(
        "what", ["taken", "taken back", "moved", "restarted", "other types", "removed", "restored"]
    )
    async def test_they_are_void_for_what_somebody_else_had(
        self, store: Store, backend: SharedData, clock: ManualClock, what: str
    ) -> None:
        """They are void when the first deliverer has it again; nothing of them is there."""
        await hooks(store)
        hook = await mine(store)
        await add(store)
        after = await settled(store)
        if what in {"taken", "taken back"}:
            clock.advance(31)
            await mine(store, "b")
            if what == "taken back":
                await store.deliverers.release("b")
        elif what == "moved":
            await store.webhooks.change(1, WebhookChange(after="now"), ACTOR)
        elif what == "restarted":
            for is_enabled in (False, True):
                await store.webhooks.change(1, WebhookChange(enabled=is_enabled), ACTOR)
        elif what == "other types":
            await store.webhooks.change(1, WebhookChange(types=("key.*",)), ACTOR)
        elif what == "removed":
            await store.webhooks.remove(1, ACTOR)
        else:
            await store.events.note_restore(ACTOR)
        if what not in {"taken", "removed"}:
            await mine(store)
        before = backend.execute("SELECT after_id, failures, owner FROM webhooks")
        noted = Settled(
            replace(after, position=replace(after.position, id=1)),
            WebhookHealth(3, 5, 7),
            [attempt_of(1)],
            [Repetition(9, *NONE)],
            [],
            DisabledReason.GONE,
        )
        assert not await store.deliverers.settle("a", hook, noted)
        if what in {"taken", "restored"}:
            await store.deliverers.move("a", [1], after)
        else:
            await store.deliverers.go_on("a", hook, replace(after, data_set="f" * 12))
        assert backend.execute("SELECT after_id, failures, owner FROM webhooks") == before
        for table in ("webhook_tries", "webhook_repetitions"):
            assert backend.execute(f"SELECT * FROM {table}") == []

    async def test_the_last_hundred_successes_are_kept_and_every_failure(self, store: Store) -> None:
        """Newest first, in pages of any length; of another webhook nothing leaves."""
        await hooks(store, 2)
        await claim(store, "a")
        one, other = (await store.deliverers.owned("a")).webhooks
        await store.deliverers.settle("a", other, settles(other, attempts=[attempt_of(0)]))
        expected = [attempt_of(at, None if at % 3 else "It answered 500.") for at in range(240)]
        for at in range(0, 240, 48):
            await store.deliverers.settle("a", one, settles(one, attempts=expected[at : at + 48]))
        failed = [each for each in expected if each.fault]
        worked = [each for each in expected if not each.fault][-100:]
        kept = sorted(failed + worked, key=lambda each: each.at_ms)
        assert await attempts(store, 1) == kept
        assert await attempts(store, 2) == [attempt_of(0)]
        found, before_id = list[DeliveryAttempt](), INT64_MAX
        while before_id:
            page = await store.deliveries.attempts(1, 60, before_id)
            found, before_id = found + page.attempts, page.next_start or 0
        assert found == kept[::-1]


class TestGoingOn:
    """A webhook goes on after a bookmark that the store can't continue."""

    async def test_one_goes_on_behind_what_a_removal_took(self, store: Store, backend: SharedData) -> None:
        """The webhook's bookmark is older than what is kept, which comes from the first on."""
        await hooks(store)
        hook = await mine(store)
        await add(store, 3)
        gone = await settled(store)
        lose(backend.execute, gone.position)
        assert await store.deliverers.go_on("a", hook, hook.after) == gone
        assert (await mine(store)).after == gone

    async def test_at_the_newest_restore_and_in_a_copy_where_it_was(
        self, store: Store, backend: SharedData
    ) -> None:
        """What was in the data then is not sent again."""
        await hooks(store)
        hook = await mine(store)
        for _ in range(2):
            await add(store)
            await store.events.note_restore(ACTOR)
        await add(store)
        await settled(store)
        bookmark = await store.deliverers.go_on("a", hook, hook.after)
        page = await followed(store, bookmark)
        assert [event.type for event in page.events] == ["store.restored", "pet.created"]
        came = Bookmark("f" * 12, Position(0, page.positions[0].id))
        assert (await store.deliverers.go_on("a", hook, came)).position.id == came.position.id
        restored_id = came.position.id
        for stopped_at, goes_on_in in ((restored_id - 1, came.data_set), (restored_id, bookmark.data_set)):
            backend.execute(
                f"UPDATE webhooks SET data_set = '{came.data_set}', after_transaction = 0,"
                f" after_id = {stopped_at}, owner = ''"
            )
            assert (await mine(store)).after == Bookmark(goes_on_in, Position(0, stopped_at))
