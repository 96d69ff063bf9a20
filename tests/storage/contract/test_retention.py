"""What is older than PETSTORE_JOURNAL_KEEP leaves, in both stores, and nobody misses an event in silence."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from petstore.background import retention as background
from petstore.background.retention import remove_old
from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict, EventsGone
from petstore.core.events import Bookmark, Event, EventQuery
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import BUSINESS, FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.pets import NewPet
from petstore.core.values import INT64_MAX
from petstore.core.webhooks import DeliveryAttempt, WebhookChange, WebhookHealth
from petstore.storage.store import Store
from petstore.transactions import retention
from petstore.transactions.script import Script
from tests.storage.contract.test_events import all_after, settled
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.failing_webhooks import add_webhook, settle
from tests.support.journal import ACTOR, entries, followed, lose, written
from tests.support.webhooks import account

REX = NewPet("Rex", 1)
DAY = 86_400
KEEP_DAYS = 30
KEEP_MS = KEEP_DAYS * DAY_MS


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "STEP_MAX", 2)


async def add(store: Store, count: int) -> None:
    for _ in range(count):
        await store.pets.add(REX, ACTOR)


async def remove(store: Store, clock: ManualClock, keep_ms: int | None = KEEP_MS) -> None:
    """All that is older, whatever other transactions of the server hold up."""
    await settled(store)
    await remove_old(store.retention, clock, keep_ms)


async def step(store: Store, clock: ManualClock) -> bool:
    """One step of a process of its own; whether anything was left to do."""
    since_ms = clock.now_ms() - KEEP_MS
    last = await store.retention.last_before(since_ms)
    return await store.retention.remove_entries(since_ms, last, None) is not None


async def bookmarks(store: Store, count: int) -> list[Bookmark]:
    """Return the bookmarks after each of the first `count` events."""
    await settled(store)
    return [(await followed(store, None, number)).after for number in range(1, count + 1)]


async def pets_in_journal(store: Store) -> list[int]:
    return [entry.subject_id for entry in await entries(store) if entry.type == "pet.added"]


async def is_gone(store: Store, after: Bookmark | None) -> bool:
    try:
        await followed(store, after)
    except EventsGone:
        return True
    return False


async def test_what_is_older_leaves_and_what_is_younger_stays(store: Store, clock: ManualClock) -> None:
    """Entries leave when they are too old, to the millisecond, in any number of steps, as time goes on."""
    for _ in range(5):
        await add(store, 3)
        clock.advance(DAY)
    clock.advance((KEEP_DAYS - 3) * DAY)  # the third lot is as old as what is kept
    await remove(store, clock)
    assert await pets_in_journal(store) == list(range(7, 16))
    clock.advance(0.001)
    await remove(store, clock)
    assert await pets_in_journal(store) == list(range(10, 16))
    clock.advance(DAY)
    await remove(store, clock)
    assert await pets_in_journal(store) == list(range(13, 16))


@pytest.mark.parametrize("wrong_days", [-60, 60])
async def test_a_clock_that_was_wrong_once_takes_no_younger_entry_away(
    store: Store, clock: ManualClock, wrong_days: int
) -> None:
    """Times are searched for by halving, which meets the tenth of 19 first."""
    await add(store, 4)
    clock.advance((KEEP_DAYS + 1) * DAY)
    for number in range(5, 20):
        clock.advance(wrong_days * DAY if number == 10 else 0)
        await add(store, 1)
        clock.advance(-wrong_days * DAY if number == 10 else 0)
    await remove(store, clock)
    assert await pets_in_journal(store) == list(range(5, 20))


async def test_the_newest_entry_always_stays(store: Store, clock: ManualClock) -> None:
    """The identifier of the newest entry is not used again, and a bookmark of now goes on from there."""
    await add(store, 5)
    newest = (await entries(store))[-1]
    clock.advance(365 * DAY)
    await remove(store, clock)
    await remove(store, clock)
    assert await entries(store) == [newest]
    now = await store.events.newest()
    assert (await followed(store, now)).events == []
    await add(store, 1)
    await settled(store)
    assert [event.data["id"] for event in (await followed(store, now)).events] == [6]
    assert [entry.subject_id for entry in await entries(store)] == [5, 6]


async def test_what_the_service_still_reads_stays(store: Store, clock: ManualClock) -> None:
    """A key is rotated once, and a bill has the plan of its day, for ever."""
    first = clock.now_ms() // DAY_MS
    await store.accounts.add("shop", FREE, ACTOR)
    await store.keys.issue("shop", "test", ACTOR)
    await store.keys.rotate(1, "test", 10**12, ACTOR)
    for plan in (PRO, BUSINESS):
        clock.advance(DAY)
        await store.accounts.set_plan("shop", plan, ACTOR)
    clock.advance(100 * DAY)
    await add(store, 1)
    await remove(store, clock)
    kept = ["key.rotated key:1", *["account.plan_changed account:1"] * 2]
    assert await written(store) == [*kept, "pet.added pet:1"]
    with pytest.raises(Conflict, match="replaced by key 2"):
        await store.keys.rotate(1, "test", 0, ACTOR)
    [account] = await store.billing.accounts(first, first + 3, 0, 10)
    assert [day.plan for day in account.bill(first, first + 3)] == [FREE, PRO, BUSINESS, BUSINESS]


async def test_a_removal_that_was_cut_short_is_taken_up(backend: SharedData, clock: ManualClock) -> None:
    """Another process ends a removal that a kill cut short after any step: bookmarks at and after the end of
    the removed entries go on; earlier bookmarks, and none, get EventsGone."""
    store = backend.open()
    await add(store, 6)
    places = await bookmarks(store, 6)
    clock.advance(100 * DAY)
    await add(store, 1)
    await settled(store)
    assert await step(store, clock)
    assert await pets_in_journal(store) == [3, 4, 5, 6, 7]
    assert [await is_gone(store, place) for place in (None, *places)] == [*[True] * 2, *[False] * 5]
    kept = await all_after(store, EventQuery(100, None, after=places[1]))
    assert [event.data["id"] for event in kept] == [3, 4, 5, 6, 7]
    await remove(backend.open(), clock)
    assert await pets_in_journal(store) == [7]
    assert [await is_gone(store, place) for place in places] == [*[True] * 5, False]


async def test_of_two_processes_one_goes_on(backend: SharedData, clock: ManualClock) -> None:
    """The one that came last: the other one sees that entries have gone without it."""
    one, other = backend.open(), backend.open()
    await add(one, 9)
    clock.advance(100 * DAY)
    await settled(one)
    since_ms = clock.now_ms()
    last = await one.retention.last_before(since_ms)
    mine = await one.retention.remove_entries(since_ms, last, None)
    assert mine is not None
    theirs = await other.retention.remove_entries(since_ms, last, None)
    assert theirs is not None
    assert await one.retention.remove_entries(since_ms, last, mine.gone) is None
    assert await other.retention.remove_entries(since_ms, last, theirs.gone) is not None
    await asyncio.gather(remove(one, clock), remove(other, clock))
    assert await pets_in_journal(one) == [9]


@pytest.mark.parametrize("seed", range(4))
async def test_a_follower_gets_every_event_or_is_told(
    backend: SharedData, clock: ManualClock, seed: int
) -> None:
    """Who pages while entries leave has all from the first on, until one answer says that events are gone."""
    chance = random.Random(seed)
    store, other = backend.open(), backend.open()
    await add(store, 20)
    clock.advance(100 * DAY)
    await add(store, 5)
    expected = [event.id for event in await all_after(store, EventQuery(100, None))]
    seen: list[Event] = []
    after: Bookmark | None = None
    try:
        while len(seen) < len(expected):
            for _ in range(chance.randint(0, 1 + seed)):
                await step(other, clock)
            page = await followed(store, after, chance.randint(1, 4))
            seen, after = seen + page.events, page.after
    except EventsGone:
        assert len(seen) < 20
    assert [event.id for event in seen] == expected[: len(seen)]


class Between:
    """Runs reads, and something else after each statement: as in a process that was stopped there."""

    def __init__(self, database: Any, meanwhile: Callable[[], object]) -> None:
        self._database = database
        self._meanwhile = meanwhile

    async def read(self, script: Script[Any]) -> Any:
        return await self._database.read(self._interrupted(script))

    def _interrupted(self, script: Script[Any]) -> Script[Any]:
        request = next(script)
        while True:
            rows = yield request
            self._meanwhile()
            try:
                request = script.send(rows)
            except StopIteration as end:
                return end.value


@pytest.mark.parametrize("has_bookmark", [True, False])
async def test_entries_that_leave_while_a_page_is_read_are_not_missed(
    backend: SharedData, has_bookmark: bool
) -> None:
    """However long a process stands still between two of its statements."""
    store = backend.open()
    await add(store, 4)
    first, *_, last = await bookmarks(store, 3)

    def leave() -> None:
        lose(backend.execute, last.position)
        backend.execute(f"DELETE FROM journal WHERE id <= {last.position.id}")

    store.events._database = Between(store.events._database, leave)  # type: ignore[assignment]
    with pytest.raises(EventsGone):
        await followed(store, first if has_bookmark else None)


async def test_days_of_a_year_are_kept_for_bills(store: Store, clock: ManualClock) -> None:
    """400 days, whatever is kept of the journal, of each account; more where more is kept."""
    today = clock.now_ms() // DAY_MS
    for name in "abc":
        await store.accounts.add(name, FREE, ACTOR)
    days = [today - age for age in (0, 30, 365, 400, 401, 402, 900, 901, 902)]
    usage = {(account, day): DailyUsage(day, 1, 0, 0) for account in (1, 2, 3) for day in days}
    await store.counters.save(LimiterState({}, {}), UsageChanges(usage))
    for keep_ms, kept in ((900 * DAY_MS, days[:-2]), (KEEP_MS, days[:4])):
        await remove(store, clock, keep_ms)
        for account_id in (1, 2, 3):
            found = await store.usage.days(clock.now_ms(), account_id, days=2_000)
            assert [each.day for each in found] == kept


async def test_nothing_is_written_where_nothing_is_old(backend: SharedData, clock: ManualClock) -> None:
    """A young store stays whole: who follows without a bookmark begins with the first event."""
    store = backend.open()
    await add(store, 3)
    clock.advance(KEEP_DAYS * DAY)
    await remove(store, clock)
    assert backend.execute("SELECT gone_id FROM data_set WHERE is_whole") == [(0,)]
    assert len((await followed(store)).events) == 3


async def test_a_removal_says_once_what_left(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many entries and days, and from when on changes are kept; nothing where nothing left."""
    said: list[dict[str, object]] = []
    monkeypatch.setattr(background._log, "info", lambda event, **more: said.append({"event": event, **more}))
    await add(store, 5)
    clock.ms = 1_800_000_000_000 + 100 * DAY_MS
    await add(store, 1)
    await remove(store, clock)
    await remove(store, clock)
    assert said == [
        {
            "event": "removed",
            "entries": 5,
            "usage_days": 0,
            "webhooks": 0,
            "webhook_tries": 0,
            "refusals": 0,
            "kept_since": "2027-03-26T08:00:00.000Z",
        }
    ]


async def test_what_a_removed_webhook_had_leaves_in_steps(
    store: Store, backend: SharedData, clock: ManualClock
) -> None:
    """However young it is; what another one has stays, and of the removed one whose its events are."""
    hooks = await webhooks(store, 2)
    for hook in hooks:
        await note_attempts(store, hook, [1_800_000_000_000] * 5)
        for number in range(5):
            backend.execute(f"INSERT INTO webhook_repetitions VALUES ({hook}, 'd', {number}, 1, {number})")
    tables = ["webhook_tries", "webhook_repetitions"]
    before = [backend.execute(f"SELECT count(*) FROM {table}") for table in tables]
    await store.webhooks.remove(hooks[0], ACTOR)
    commits: list[int] = []
    store.on_commit(lambda: commits.append(1))
    await remove(store, clock, None)
    assert len(commits) >= 5
    for table in tables:
        assert backend.execute(f"SELECT DISTINCT webhook_id FROM {table}") == [(hooks[1],)]
    assert [backend.execute(f"SELECT 2 * count(*) FROM {table}") for table in tables] == before
    kept = "SELECT url, description, secrets FROM webhooks WHERE removed_at_ms IS NOT NULL"
    assert backend.execute(kept) == [("", "", "[]")]


async def test_events_of_a_removed_webhook_come_again(
    store: Store, backend: SharedData, clock: ManualClock
) -> None:
    """Events of a removed webhook come again to its account while they are kept; then its row leaves too."""
    hooks = await webhooks(store, 3)
    for hook in hooks:
        await store.webhooks.change(hook, WebhookChange(enabled=False), ACTOR)
    disabled = EventQuery(100, 1, frozenset({"webhook.disabled"}))
    before = await all_after(store, disabled)
    assert [event.data["id"] for event in before] == hooks
    for hook in hooks:
        await store.webhooks.remove(hook, ACTOR)
    await remove(store, clock, None)
    assert await all_after(store, disabled) == before
    clock.ms += KEEP_MS + 1
    await store.pets.add(REX, ACTOR)
    await remove(store, clock)
    assert backend.execute("SELECT * FROM webhooks") == []


@through_pgbouncer_too
@pytest.mark.parametrize("keep_ms", [None, KEEP_MS])
async def test_failed_tries_leave_after_thirty_days(
    store: Store, clock: ManualClock, keep_ms: int | None
) -> None:
    """Webhooks' failed attempts leave after 30 days to the millisecond, changes kept or not; others stay."""
    hooks = await webhooks(store, 2)
    changes = len(await entries(store))
    clock.advance(100 * DAY)
    now_ms = clock.now_ms()
    for hook in hooks:
        await note_attempts(store, hook, [now_ms - KEEP_MS - age for age in (9, 3, 2, 1, 0, -1)])
    await remove(store, clock, keep_ms)
    for hook in hooks:
        tries = (await store.deliveries.attempts(hook, 100, INT64_MAX)).attempts
        assert [each.at_ms for each in tries if each.fault] == [now_ms - KEEP_MS + 1, now_ms - KEEP_MS]
        assert [each.at_ms for each in tries if not each.fault] == [now_ms - 2 * KEEP_MS]
    assert (len(await entries(store)) == changes) == (keep_ms is None)


async def webhooks(store: Store, count: int) -> list[int]:
    """New webhooks of the account `shop`."""
    await account(store, "shop", PRO)
    return [(await add_webhook(store)).id for _ in range(count)]


async def note_attempts(store: Store, webhook_id: int, failed_at_ms: list[int]) -> None:
    """Note attempts that failed at these times, and an earlier one that did not, as their deliverer does."""
    succeeded = DeliveryAttempt("evt_1", "pet.created", failed_at_ms[-1] - 1 - KEEP_MS, 1, 200, None, "")
    failed = [
        DeliveryAttempt("evt_1", "pet.created", at_ms, 1, 500, "It answered 500.", "")
        for at_ms in failed_at_ms
    ]
    await settle(store, webhook_id, WebhookHealth(), attempts=[succeeded, *failed])
