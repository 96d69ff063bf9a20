"""Facts that are not changes of either store: which are recorded, for whom, and each of them once."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from petstore.background.facts import FactRecorder
from petstore.core.digests import digest
from petstore.core.durations import DAY_MS, HOUR_MS
from petstore.core.events import EventQuery, read_types
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, resolve_plan
from petstore.core.limits.usage import UsageChanges, UsageMeter
from petstore.core.moments import iso_moment
from petstore.core.pets import NewPet
from petstore.limiter.memory import MemoryLimiter
from petstore.storage.store import Store
from petstore.transactions import facts
from tests.storage.contract.test_events import all_after
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries

PER_DAY = 10
SMALL = resolve_plan("enterprise", 1_000, PER_DAY)
# Of the deprecated operation: more than a year after the clock of tests.
REMOVAL_AT_MS = 1_922_659_200_000
MONTH_AND_END = ("2031-08-01T12:00:00+00:00", "2031-09-01T00:00:00+00:00")
FACTS = ["limit.*", "key.banned", "key.expiring"]


class Service:
    """A process that serves: it counts by the rules of limits, and saves its counts."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self._clock = clock
        self._limiter = MemoryLimiter(clock, BanPolicy(), store.versions)
        self._meter = UsageMeter()

    async def issue(self, account: str, **options: Any) -> str:
        return (await self.store.keys.issue(account, "test", ACTOR, **options)).secret

    async def ask(self, key: str, times: int) -> None:
        """Send `times` requests with the key, and save their counts."""
        caller = await self.store.keys.find_caller(digest(key.encode()))
        assert caller is not None
        for _ in range(times):
            decision = await self._limiter.take(caller)
            assert decision is not None
            self._meter.count(caller.account_id, caller.key_id, self._clock.ms, decision.allowed, False)
        await self.store.counters.save(self._limiter.drain(), self._meter.drain())

    async def earn_a_ban(self, key: str) -> str:
        """The moment until which a key of the Free plan is banned then."""
        await self.ask(key, 61)
        self._clock.advance(3)
        await self.ask(key, 61)
        (ban,) = await self.store.usage.bans(self._clock.ms)
        return iso_moment(ban.banned_until_ms)


@pytest.fixture
async def service(store: Store, clock: ManualClock) -> Service:
    """Two accounts: `small` may make ten requests a day, `free` is on the Free plan."""
    await store.accounts.add("small", SMALL, ACTOR)
    await store.accounts.add("free", FREE, ACTOR)
    return Service(store, clock)


async def record_all(store: Store, clock: ManualClock) -> None:
    """All that a background process records that begins now."""
    await FactRecorder(store.facts, clock, REMOVAL_AT_MS).record_counted()
    await store.facts.record_timed(REMOVAL_AT_MS)


async def recorded(store: Store) -> list[str]:
    """The types of the entries that the service itself wrote."""
    return [entry.type for entry in await entries(store) if entry.actor == "service"]


async def seen(store: Store, account_id: int) -> list[tuple[str, dict[str, Any]]]:
    # The last entry of those that were written at once may not be the last event; this one is.
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    events = await all_after(store, EventQuery(100, account_id, read_types(FACTS)))
    return [(event.type, event.data) for event in events]


async def test_each_is_told_once_whoever_looks_and_however_often(
    backend: SharedData, service: Service, clock: ManualClock
) -> None:
    """Two processes look at once, again and again, and those that start later; the others learn nothing."""
    stores = service.store, backend.open()
    free = await service.issue("free")
    expires_at_ms = clock.ms + 20 * DAY_MS
    await service.issue("small", label="till", expires_at_ms=expires_at_ms)
    clock.ms = expires_at_ms - 14 * DAY_MS
    await service.ask(await service.issue("small"), PER_DAY + 1)
    until = await service.earn_a_ban(free)
    recorders = [FactRecorder(store.facts, clock, REMOVAL_AT_MS) for store in stores]
    for _ in range(3):
        await asyncio.gather(
            *(recorder.record_counted() for recorder in recorders),
            *(store.facts.record_timed(REMOVAL_AT_MS) for store in stores),
        )
    for store in (backend.open(), *stores):
        await record_all(store, clock)
    day = {"limit": PER_DAY, "used": PER_DAY, "resetAt": iso_moment(clock.ms - clock.ms % DAY_MS + DAY_MS)}
    small = dict(await seen(service.store, 1))
    assert small == {
        "key.expiring": {"id": 2, "label": "till", "expiresAt": iso_moment(expires_at_ms)},
        "limit.approaching": {"id": 1, **day},
        "limit.reached": {"id": 1, **day},
    }
    assert await seen(service.store, 2) == [
        ("key.banned", {"id": 1, "bannedUntil": until, "previous": {"bannedUntil": None}})
    ]
    assert len(await recorded(service.store)) == 4


async def test_a_day_is_told_at_its_80th_hundredth_and_at_the_first_refusal(
    service: Service, clock: ManualClock
) -> None:
    """One request less, or none refused, is none; the next day is another fact."""
    await service.store.accounts.set_plan("small", resolve_plan("enterprise", 1_000, 100), ACTOR)
    key = await service.issue("small")
    expected: list[str] = []
    for _ in range(2):
        for more, new in [
            (79, []),
            (1, ["account.limit_approaching"]),
            (1, []),
            (19, []),
            (1, ["account.limit_reached"]),
            (1, []),
        ]:
            await service.ask(key, more)
            await record_all(service.store, clock)
            expected += new
            assert await recorded(service.store) == expected, more
        clock.advance(24 * 3_600)


async def test_a_refusal_by_the_minute_is_none_of_the_day(service: Service, clock: ManualClock) -> None:
    """It is none where the day is used up to its end, or where the minute ends on the next day."""
    await service.store.accounts.set_plan("small", resolve_plan("enterprise", PER_DAY // 2, PER_DAY), ACTOR)
    key = await service.issue("small")
    await service.ask(key, PER_DAY)
    clock.advance(60)
    await service.ask(key, PER_DAY // 2)
    await record_all(service.store, clock)
    assert await recorded(service.store) == ["account.limit_approaching"]
    await service.store.accounts.set_plan("small", resolve_plan("enterprise", 8, PER_DAY), ACTOR)
    clock.ms += 2 * DAY_MS - clock.ms % DAY_MS - 10_000
    await service.ask(key, 9)
    await record_all(service.store, clock)
    assert await recorded(service.store) == ["account.limit_approaching"] * 2


@through_pgbouncer_too
async def test_the_last_seconds_of_a_day_are_told_on_the_next(service: Service, clock: ManualClock) -> None:
    """When the windows of the new day have taken their place, and the key was refused again since."""
    await service.store.accounts.set_plan("small", resolve_plan("enterprise", PER_DAY, PER_DAY), ACTOR)
    key = await service.issue("small")
    midnight_ms = clock.ms - clock.ms % DAY_MS + DAY_MS
    clock.ms = midnight_ms - 1_000
    await service.ask(key, PER_DAY + 1)
    clock.ms = midnight_ms + 60_000
    await service.store.accounts.set_plan("small", resolve_plan("enterprise", 1, PER_DAY), ACTOR)
    await service.ask(key, 2)
    await FactRecorder(service.store.facts, clock, REMOVAL_AT_MS).record_counted()
    assert await recorded(service.store) == []
    for _ in range(2):
        await record_all(service.store, clock)
        reset_at = {data["resetAt"] for _, data in await seen(service.store, 1)}
        assert reset_at == {iso_moment(midnight_ms)}
        assert await recorded(service.store) == ["account.limit_approaching", "account.limit_reached"]


async def test_a_day_that_ended_an_hour_ago_is_no_news(service: Service, clock: ManualClock) -> None:
    """The plan may be another one since, and its numbers are not those of that day."""
    await service.ask(await service.issue("small"), PER_DAY + 1)
    clock.ms += DAY_MS - clock.ms % DAY_MS + HOUR_MS
    await record_all(service.store, clock)
    assert await recorded(service.store) == []


async def test_a_ban_after_a_pardon_is_another_one(service: Service, clock: ManualClock) -> None:
    """One that was lifted before anybody looked is not recorded: its end was."""
    key = await service.issue("free")
    await service.earn_a_ban(key)
    of_before = await service.store.counters.load(clock.ms)
    await service.store.keys.pardon(1, ACTOR)
    for _ in range(2):  # the second time after a process that has not heard of the pardon
        await record_all(service.store, clock)
        assert await recorded(service.store) == []
        await service.store.counters.save(of_before, UsageChanges())
    for bans in (1, 2):
        clock.advance(60)
        await service.earn_a_ban(key)
        await record_all(service.store, clock)
        assert await recorded(service.store) == ["key.banned"] * bans
        await service.store.keys.pardon(1, ACTOR)


async def test_a_ban_that_has_ended_meanwhile_is_told(service: Service, clock: ManualClock) -> None:
    """Nobody looked for longer than it lasted; after a day it is not reported."""
    key = await service.issue("free")
    await service.earn_a_ban(key)
    clock.advance(3_600)
    await record_all(service.store, clock)
    assert await recorded(service.store) == ["key.banned"]
    await service.earn_a_ban(key)
    clock.advance(25 * 3_600)
    await record_all(service.store, clock)
    assert await recorded(service.store) == ["key.banned"]


@pytest.mark.parametrize("end", ["suspend", "close", "revoke"])
async def test_nothing_is_told_of_what_has_no_access(service: Service, clock: ManualClock, end: str) -> None:
    """No fact is recorded about a suspended or closed account, or about a revoked key."""
    store = service.store
    expires_at_ms = clock.ms + 20 * DAY_MS
    keys = [await service.issue(account, expires_at_ms=expires_at_ms) for account in ("small", "free")]
    clock.ms = expires_at_ms - 14 * DAY_MS
    await service.ask(keys[0], PER_DAY + 1)
    await service.earn_a_ban(keys[1])
    for number, account in enumerate(("small", "free"), 1):
        if end == "revoke":
            await store.keys.revoke(number, ACTOR)
        else:
            await getattr(store.accounts, end)(account, ACTOR)
    await record_all(store, clock)
    limits = ["account.limit_approaching", "account.limit_reached"]
    assert await recorded(store) == (limits if end == "revoke" else [])


class TestExpiry:
    """Keys that have an end."""

    async def test_it_is_told_14_days_before_and_3(self, service: Service, clock: ManualClock) -> None:
        """A millisecond earlier is none, and there is nothing at the end."""
        expires_at_ms = clock.ms + 30 * DAY_MS
        await service.issue("free", expires_at_ms=expires_at_ms)
        for left_ms, count in [
            (14 * DAY_MS + 1, 0),
            (14 * DAY_MS, 1),
            (3 * DAY_MS + 1, 1),
            (3 * DAY_MS, 2),
            (1, 2),
            (0, 2),
            (-5 * DAY_MS, 2),
        ]:
            clock.ms = expires_at_ms - left_ms
            await record_all(service.store, clock)
            assert await recorded(service.store) == ["key.expiring"] * count, left_ms

    async def test_one_event_is_enough_after_a_long_pause(self, service: Service, clock: ManualClock) -> None:
        """Nobody looked at the 14th day before the end."""
        expires_at_ms = clock.ms + 30 * DAY_MS
        await service.issue("free", expires_at_ms=expires_at_ms)
        clock.ms = expires_at_ms - 2 * DAY_MS
        await record_all(service.store, clock)
        assert await recorded(service.store) == ["key.expiring"]

    async def test_a_new_key_is_not_told_to_who_made_it(self, service: Service, clock: ManualClock) -> None:
        """One of ten days is recorded three days before its end only, one of two days never."""
        for days in (2, 10):
            await service.issue("free", expires_at_ms=clock.ms + days * DAY_MS)
        for _ in range(10):
            await record_all(service.store, clock)
            clock.advance(24 * 3_600)
        assert [data["id"] for _, data in await seen(service.store, 2)] == [2]

    async def test_a_replaced_key_is_told_once(self, service: Service, clock: ManualClock) -> None:
        """It is older than the time that it has left."""
        await service.issue("free")
        clock.advance(30 * 24 * 3_600)
        await service.store.keys.rotate(1, "test", DAY_MS, ACTOR)
        for _ in range(3):
            await record_all(service.store, clock)
            clock.advance(3_600)
        assert [data["id"] for _, data in await seen(service.store, 2)] == [1]


async def test_an_entry_and_its_fact_are_one_transaction(
    service: Service, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that fails in between has recorded nothing, and the next one records it."""
    await service.ask(await service.issue("small"), 8)
    recorder = FactRecorder(service.store.facts, clock, REMOVAL_AT_MS)
    with monkeypatch.context() as broken:
        broken.setattr(facts, "record", lambda *_: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            await recorder.record_counted()
    assert await recorded(service.store) == []
    await recorder.record_counted()
    assert await recorded(service.store) == ["account.limit_approaching"]


async def test_the_counters_are_read_after_a_write_only(
    backend: SharedData, service: Service, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle service reads one number; on PostgreSQL it is that of all databases of the server."""
    reads = 0
    record_counted = service.store.facts.record_counted

    async def counted() -> None:
        nonlocal reads
        reads += 1
        await record_counted()

    monkeypatch.setattr(service.store.facts, "record_counted", counted)
    recorder = FactRecorder(service.store.facts, clock, REMOVAL_AT_MS)
    key = await service.issue("small")
    await recorder.record_counted()
    for _ in range(3):
        await recorder.record_counted()
    if backend.exact_versions:
        assert reads == 1
    await service.ask(key, 8)
    await recorder.record_counted()
    assert await recorded(service.store) == ["account.limit_approaching"]


async def test_a_week_that_ends_with_its_month_is_recorded_too(store: Store, clock: ManualClock) -> None:
    """The week is one of the deprecated operation: August 2031 was recorded before its last month, and ends
    with a Sunday."""
    await store.accounts.add("shop", FREE, ACTOR)
    first_ms, removal_ms = (1_000 * int(datetime.fromisoformat(text).timestamp()) for text in MONTH_AND_END)
    for day in (0, 1, 25, 26):
        clock.ms = first_ms + day * DAY_MS
        meter = UsageMeter()
        meter.count(1, 1, clock.ms, allowed=True, deprecated=True)
        await store.counters.save(LimiterState(), meter.drain())
        await store.facts.record_timed(removal_ms)
    since = [entry.after["since"] for entry in await entries(store) if entry.after and "since" in entry.after]
    assert since == ["2031-08-01", "2031-07-28", "2031-08-25"]


async def test_a_ban_of_a_week_is_told_once(service: Service, clock: ManualClock) -> None:
    """An operator may set bans of any length: while one may be found, its fact is kept."""
    await service.earn_a_ban(await service.issue("free"))
    state = await service.store.counters.load(clock.ms)
    (ban,) = state.bans.values()
    ban.banned_until_ms = ban.banned_from_ms + 7 * DAY_MS
    await service.store.counters.save(state, UsageChanges())
    for _ in range(9):
        await record_all(service.store, clock)
        clock.ms += DAY_MS
    assert await recorded(service.store) == ["key.banned"]


async def test_old_facts_are_forgotten(backend: SharedData, service: Service, clock: ManualClock) -> None:
    """Three days after the moment that they are of; their entries stay."""
    await service.ask(await service.issue("small"), PER_DAY + 1)
    await record_all(service.store, clock)
    count = "SELECT count(*) FROM facts"
    clock.ms += 3 * DAY_MS - clock.ms % DAY_MS
    await record_all(service.store, clock)
    assert backend.execute(count)[0][0] == 2
    clock.advance(0.001)
    await record_all(service.store, clock)
    assert backend.execute(count)[0][0] == 0
    assert len(await recorded(service.store)) == 2


async def test_many_are_told_in_several_transactions(
    service: Service, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of a bounded number."""
    monkeypatch.setattr(facts, "_WRITTEN_AT_A_TIME", 2)
    monkeypatch.setattr(facts, "IDS_MAX", 2)
    for number in range(5):
        await service.store.accounts.add(f"account-{number}", SMALL, ACTOR)
        await service.ask(await service.issue(f"account-{number}"), PER_DAY + 1)
    await record_all(service.store, clock)
    assert (
        sorted(await recorded(service.store))
        == ["account.limit_approaching"] * 5 + ["account.limit_reached"] * 5
    )
