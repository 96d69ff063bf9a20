"""What only the limiter in Valkey has: records from the store, batches of what it saw, records that end."""

from __future__ import annotations

import asyncio

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.decision import Decision
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows
from tests.support.clock import ManualClock
from tests.support.shared import Replica, Replicas
from tests.support.valkey import Client
from tests.support.windows import limits_of, used_of

FREE = Caller(1, 1, limits_of(60, 1_000))
BUSY = BanPolicy(strikes_allowed=2, grace_ms=0)


def empty(replicas: Replicas) -> None:
    """FLUSHALL, as an operator or an eviction does it."""
    Client(replicas.url)("FLUSHDB")
    assert replicas.time is not None
    replicas.time.forget()


def left(decision: Decision) -> list[int]:
    return [decision.remaining[0], decision.remaining[-1]]


async def ban(replica: Replica, clock: ManualClock, caller: Caller) -> Decision:
    """Go on after the last request until the ban."""
    while not (decision := await replica.take(caller)).banned:
        clock.ms += 1
    return decision


class TestRecovery:
    """What is missing in Valkey comes from the counter store; nothing is handed out twice."""

    async def test_an_unknown_account_is_asked_for_once(self, replicas: Replicas) -> None:
        """Fifty first requests at once share a question, or a few when their replies come in pieces,
        and each gets a Remaining of its own."""
        replica = await replicas.open()
        decisions = await asyncio.gather(*(replica.take(FREE) for _ in range(50)))
        assert sorted(left(decision)[0] for decision in decisions) == list(range(10, 60))
        asked = replicas.counters.loads
        assert 1 <= asked < 10
        await replica.take(FREE)
        assert replicas.counters.loads == asked

    async def test_a_batch_on_its_way_to_the_counter_store_counts(
        self, replicas: Replicas, clock: ManualClock
    ) -> None:
        """The flusher has taken it, and the counter store does not have it yet: windows and bans."""
        replica = await replicas.open(policy=BUSY)
        await replica.use_up(FREE, 20)
        banned = await ban(replica, clock, Caller(2, 2, limits_of(1, 1_000)))
        replica.limiter.drain()
        empty(replicas)
        assert left(await replica.take(FREE)) == [39, 979]
        again = await replica.take(Caller(2, 2, limits_of(1, 1_000)))
        assert again.banned
        assert again.binding.reset_at == banned.binding.reset_at

    async def test_a_batch_that_arrives_while_the_counter_store_is_asked_counts(
        self, replicas: Replicas
    ) -> None:
        """The store read its rows before, and the flusher came round twice before its answer was here."""
        replica = await replicas.open()
        await replica.use_up(FREE, 20)
        load_for = replicas.counters.load_for

        async def slow(*arguments: int) -> tuple[AccountWindows | None, BanState | None]:
            told = await load_for(*arguments)
            for _ in range(2):
                await replicas.counters.merge(replica.limiter.drain(), UsageChanges())
                replica.limiter.saved()
            return told

        replicas.counters.load_for = slow  # type: ignore[assignment,method-assign]
        empty(replicas)
        assert left(await replica.take(FREE)) == [39, 979]

    async def test_a_ban_survives_an_emptied_server(self, replicas: Replicas, clock: ManualClock) -> None:
        """Through the store, and before it is there through the process that saw it; the ladder goes on."""
        replica = await replicas.open(policy=BUSY)
        caller = Caller(1, 1, limits_of(1, 1_000))
        first = await ban(replica, clock, caller)
        empty(replicas)
        assert (await replica.take(caller)).binding.reset_at == first.binding.reset_at
        await replicas.counters.merge(replica.limiter.drain(), UsageChanges())
        empty(replicas)
        other = await replicas.open(policy=BUSY)
        assert (await other.take(caller)).banned
        clock.advance(61)
        second = await ban(other, clock, caller)
        assert 300 <= second.retry_after_seconds <= 301

    async def test_restored_records_do_not_overwrite_what_came_first(self, replicas: Replicas) -> None:
        """Two processes ask the counter store for the same account; the second answer is not used."""
        one, other = await replicas.open(2), await replicas.open(2)
        both = await asyncio.gather(*(replica.take(FREE) for replica in (one, other, one, other)))
        assert sorted(left(decision)[0] for decision in both) == [56, 57, 58, 59]
        assert replicas.counters.loads == 2


async def test_windows_of_what_passed_and_bans(replicas: Replicas, clock: ManualClock) -> None:
    """The counter store gets absolute values, as the last replies had them. A refusal changes no window;
    strikes are not worth a row."""
    replica = await replicas.open(policy=BUSY)
    caller = Caller(1, 1, limits_of(1, 1_000), pardoned_at_ms=77)
    await replica.take(caller)
    opened, day = clock.now_ms(), clock.now_ms() // 86_400_000
    assert replica.limiter.drain() == LimiterState({1: used_of((opened, 1), (day, 1))})
    assert replica.limiter.drain() == LimiterState()
    await replica.take(caller)
    assert replica.limiter.drain() == LimiterState()
    banned = await ban(replica, clock, caller)
    drained = replica.limiter.drain()
    until_ms = banned.binding.reset_at * 1_000
    state = BanState(level=1, banned_from_ms=banned.now_ms, banned_until_ms=until_ms, pardoned_ms=77)
    assert drained == LimiterState({}, {1: state})


async def test_every_record_has_an_end(replicas: Replicas, clock: ManualClock) -> None:
    """Valkey forgets by itself: an account two days after its last request; a key, after its forgiveness and
    a day."""
    replica = await replicas.open(policy=BUSY)
    await replica.take(FREE)
    await ban(replica, clock, Caller(2, 2, limits_of(1, 1_000)))
    client = Client(replicas.url)
    day_ms = 86_400_000
    ends = {
        name: client("PTTL", f"{{petstore}}:{name}")
        for name in ("windows:1", "standing:1", "windows:2", "standing:2")
    }
    assert all(day_ms < end <= 2 * day_ms + 61_000 for end in ends.values()), ends
