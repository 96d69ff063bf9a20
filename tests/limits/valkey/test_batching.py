"""Requests in one turn of the event loop: one call of Valkey, and the same Decisions as one by one (I7).

What the shared call leaves open, `take` has to find out: nothing was taken, or it is as after a lost answer.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import NO_VERSIONS, Version
from petstore.limiter.valkey.batching import _KEYS_MAX
from tests.support.clock import ManualClock
from tests.support.shared import Replica, Replicas
from tests.support.valkey import Client, ValkeyServer, emptied_url
from tests.support.windows import limits_of

CALLER = Caller(1, 1, limits_of(60, 1_000))
POLICY = BanPolicy(strikes_allowed=3, grace_ms=500, durations_ms=(2_000, 5_000))


@pytest.fixture
async def replica(replicas: Replicas) -> Replica:
    return await replicas.open(2)


async def known(replica: Replica, caller: Caller = CALLER) -> Version:
    """The keyring's version, after a request that made the account's records."""
    version = (await replica.take(caller)).versions.keyring
    assert version is not None
    return version


def left(decisions: list[Decision | None]) -> list[int]:
    return [decision.remaining[0] for decision in decisions if decision is not None]


@given(turns=st.lists(st.tuples(st.integers(1, 9), st.sampled_from((0, 300, 900, 61_000))), max_size=12))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_they_are_decided_as_one_after_another(clock: ManualClock, turns: list[tuple[int, int]]) -> None:
    """Admissions, refusals, bans and their first refusals, each with all that it says."""

    async def run() -> None:
        caller, used, ban = Caller(1, 1, limits_of(7, 30)), AccountWindows(), BanState()
        async with Replicas(emptied_url(), clock, steered=True) as replicas:
            replica = await replicas.open(policy=POLICY)
            await replica.take(caller)
            decide(used, ban, caller, POLICY, clock.now_ms())
            for times, wait_ms in turns:
                clock.ms += wait_ms
                version = await known(replica, caller)
                expected = [decide(used, ban, caller, POLICY, clock.now_ms()) for _ in range(times + 1)]
                found = await replica.together(caller, version, times)
                assert [one and replace(one, versions=NO_VERSIONS) for one in found] == expected[1:]

    asyncio.run(run())


class TestOneCall:
    """What is shared."""

    async def test_a_turn_is_one_call(self, replica: Replica) -> None:
        """Fifty requests of one key and two of another, of the same account."""
        version, other = await known(replica), replace(CALLER, key_id=2)
        await known(replica, other)
        before = replica.watch.round_trips
        theirs, ours = await asyncio.gather(
            replica.together(other, version, 2), replica.together(CALLER, version, 50)
        )
        assert replica.watch.round_trips == before + 1
        assert left(theirs) == [57, 56]
        assert left(ours) == list(range(55, 5, -1))
        assert {one.versions.keyring for one in ours if one} == {version}

    async def test_a_call_is_for_so_many_keys(self, replica: Replica) -> None:
        """Valkey answers no other process meanwhile."""
        callers = [Caller(number, number, limits_of(60, 1_000)) for number in range(1, 2 * _KEYS_MAX + 2)]
        for caller in callers:
            version = await known(replica, caller)
        before = replica.watch.round_trips
        answers = await asyncio.gather(*(replica.together(caller, version, 2) for caller in callers))
        assert replica.watch.round_trips == before + 3
        assert [left(each) for each in answers] == [[58, 57]] * len(callers)

    async def test_requests_of_which_some_are_refused_are_asked_for_alone(self, replica: Replica) -> None:
        """One call for all of them, which admits none, then those for each."""
        version = await known(replica)
        before = replica.watch.round_trips
        answers = await replica.together(CALLER, version, 2 * _KEYS_MAX + 1)
        assert replica.watch.round_trips == before + 1 + 3
        assert [one.allowed for one in answers if one] == [True] * 59 + [False] * (2 * _KEYS_MAX - 58)

    async def test_other_limits_of_the_same_key_are_not_shared(self, replica: Replica) -> None:
        """The caller was read anew meanwhile."""
        version = await known(replica)
        asked = [
            replica.together(caller, version, 1)
            for caller in (CALLER, replace(CALLER, limits=limits_of(9, 9)))
        ]
        first, second = await asyncio.gather(*asked)
        assert (left(first), second) == ([58], [None])

    async def test_an_answer_that_fails_stops_no_other(self, replica: Replica) -> None:
        """It is told to the event loop, which logs it."""
        version, told = await known(replica), []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        failed = ConnectionError()

        def fail(caller: Caller, decision: Decision | None) -> None:
            raise failed

        assert replica.limiter.take_later(CALLER, version, fail)
        assert left(await replica.together(CALLER, version, 2)) == [57, 56]
        assert told == [failed]


class TestLeftOpen:
    """Nobody is told anything but None, and nothing is taken."""

    @pytest.mark.parametrize("what", ["another keyring", "emptied", "a forgotten script"])
    async def test_what_take_finds_out(self, replica: Replica, replicas: Replicas, what: str) -> None:
        """The Caller may be outdated; the store has to be read first; the script is sent again by `take`."""
        version, client = await known(replica), Client(replicas.url)
        if what == "another keyring":
            async with replica.publisher.changing(keyring=True):
                pass
        elif what == "emptied":
            client("DEL", "{petstore}:windows:1")
        else:
            client("SCRIPT", "FLUSH")
        assert await replica.together(CALLER, version, 3) == [None] * 3
        assert (await replica.take(CALLER)).remaining[0] == 58
        assert replica.watch.reasons == []

    async def test_a_version_of_another_lease(self, replica: Replica, clock: ManualClock) -> None:
        """It is not even asked about."""
        version, before = await known(replica), replica.watch.round_trips
        clock.advance(5)
        assert await replica.together(CALLER, version, 3) == [None] * 3
        assert replica.watch.round_trips == before

    async def test_a_connection_that_is_lost(self, server: ValkeyServer, clock: ManualClock) -> None:
        """Calls on a lost connection, sent or not, get None; the next connection has calls of its own."""
        async with Replicas(server.url, clock, steered=False) as replicas:
            replica = await replicas.open(2)
            for turns in (0, 1):
                version = await known(replica)
                asked = asyncio.ensure_future(replica.together(CALLER, version, 3))
                for _ in range(1 + turns):
                    await asyncio.sleep(0)
                assert replica.client._connection is not None
                replica.client._connection.give_up("cut")
                assert await asked == [None] * 3
                await replica.watch.back()
            version = await known(replica)
            assert None not in await replica.together(CALLER, version, 3)

    async def test_counts_of_an_outage_wait_for_a_call_of_their_own(self, replica: Replica) -> None:
        """The account's next request brings them along."""
        version = await known(replica)
        fallback = replica.limiter._fallback  # type: ignore[attr-defined]
        fallback.take(CALLER)
        assert await replica.together(CALLER, version, 2) == [None] * 2
        assert (await replica.take(CALLER)).remaining[0] == 57
        assert left(await replica.together(CALLER, version, 2)) == [56, 55]
