"""Valkey killed, hanging, emptied, full, read-only, forgetful: no request fails, and the bound is kept.

During an outage each of N processes admits at most its share of a limit on top of what was admitted before:
max(1, limit // N) in each window. What decided is seen by the limits in the answer.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petstore.core.durations import DAY_MS
from petstore.core.errors import LimiterUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import decide
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import NO_VERSIONS
from petstore.limiter.valkey import connection
from petstore.limiter.valkey.client import open_client
from petstore.limiter.valkey.fallback import FallbackLimiter
from petstore.limiter.valkey.limiter import ValkeyLimiter
from tests.support.clock import ManualClock
from tests.support.counter_store import MemoryCounterStore
from tests.support.proxy import open_proxy
from tests.support.shared import Replica, Replicas, Watch
from tests.support.valkey import ValkeyServer
from tests.support.waiting import pause, until
from tests.support.windows import limits_of, used_of

PROCESSES = 4
CALLER, ANOTHER = Caller(1, 1, limits_of(100, 1_000)), Caller(2, 2, limits_of(100, 1_000))
SHARE = 25
NO_BANS = BanPolicy(strikes_allowed=10**9)


class NowClock(ManualClock):
    """Stands in the minute in which the server's own clock is, so that pending counts are of one window."""

    def follow(self, server: ValkeyServer) -> None:
        seconds, microseconds = map(int, server.client("TIME"))
        self.ms = seconds * 1_000 + microseconds // 1_000


def full(server: ValkeyServer) -> None:
    server.client("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.client("CONFIG", "SET", "maxmemory", "1")


FEW = "too few replicas"
# How a server is broken, and how it is repaired.
FAULTS: dict[str, tuple[Callable[[ValkeyServer], object], Callable[[ValkeyServer], object]]] = {
    "killed": (ValkeyServer.kill, ValkeyServer.start),
    "hanging": (lambda server: server.signal(signal.SIGSTOP), lambda server: server.signal(signal.SIGCONT)),
    "full": (full, lambda server: server.client("CONFIG", "SET", "maxmemory", "0")),
    "read-only": (
        lambda server: server.client("REPLICAOF", "127.0.0.1", 1),
        lambda server: server.client("REPLICAOF", "NO", "ONE"),
    ),
    FEW: (
        lambda server: server.client("CONFIG", "SET", "min-replicas-to-write", 1),
        lambda server: server.client("CONFIG", "SET", "min-replicas-to-write", 0),
    ),
    "another password": (
        lambda server: (
            server.client("CONFIG", "SET", "requirepass", "other"),
            server.client_with("other")("CLIENT", "KILL", "TYPE", "normal"),
        ),
        lambda server: server.client_with("other")("CONFIG", "SET", "requirepass", ""),
    ),
}


@pytest.fixture(scope="module")
def started() -> Iterator[ValkeyServer]:
    with ValkeyServer().start() as server:
        yield server


@pytest.fixture
def server(started: ValkeyServer) -> ValkeyServer:
    started.client("FLUSHALL")
    return started


@pytest.fixture
def clock(server: ValkeyServer) -> NowClock:
    clock = NowClock()
    clock.follow(server)
    return clock


@pytest.fixture
async def replicas(server: ValkeyServer, clock: NowClock) -> AsyncIterator[Replicas]:
    async with Replicas(server.url, clock, steered=False) as opened:
        yield opened


def limits(decision: Decision) -> list[int]:
    return [decision.limits[0], decision.limits[-1]]


async def admitted(replica: Replica, caller: Caller, times: int) -> int:
    """How many of so many simultaneous requests pass; each of them is answered."""
    decisions = await asyncio.gather(*(replica.take(caller) for _ in range(times)))
    return sum(decision.allowed for decision in decisions)


async def lost(replica: Replica) -> None:
    """Wait until a request has met the fault."""
    await replica.take(Caller(9, 9, limits_of(100, 1_000)))
    await until(lambda: bool(replica.watch.reasons))


@asynccontextmanager
async def broken(name: str, server: ValkeyServer, *replicas: Replica) -> AsyncIterator[None]:
    """The server has this fault; afterwards each of these has found it again."""
    FAULTS[name][0](server)
    try:
        yield
    finally:
        FAULTS[name][1](server)
    for replica in replicas:
        await replica.watch.back()


@pytest.mark.parametrize("name", FAULTS)
async def test_no_request_fails_and_the_share_decides(
    name: str, server: ValkeyServer, replicas: Replicas
) -> None:
    """No request fails in an outage, even one on its way: the local share decides, and no cache is used, as
    versions are unknown. After the probe, an account's first request adds the local count to the store's."""
    replica = await replicas.open(PROCESSES, policy=NO_BANS)
    await admitted(replica, ANOTHER, 10)
    before = await replica.take(CALLER)
    assert limits(before) == [100, 1_000]
    await replicas.counters.merge(replica.limiter.drain(), UsageChanges())
    async with broken(name, server, replica):
        decisions = await asyncio.gather(*(replica.take(CALLER) for _ in range(40)))
        assert {tuple(limits(decision)) for decision in decisions} == {(SHARE, 250)}
        assert {decision.versions for decision in decisions} == {NO_VERSIONS}
        assert sum(decision.allowed for decision in decisions) == SHARE
        assert await replica.ask(CALLER, before.versions.keyring) is None
        assert replica.limiter.keyring_version() is None
        assert len(replica.watch.reasons) == 1
        assert replica.watch.local == 40
        assert await admitted(replica, ANOTHER, 15) == 15
    for used in (10 + 15 + 1, 10 + 15 + 2):
        after = await replica.take(ANOTHER)
        assert limits(after) == [100, 1_000]
        assert [after.remaining[0], after.remaining[-1]] == [100 - used, 1_000 - used]
        assert after.versions != NO_VERSIONS


class TestTheBound:
    """Over-admission during an outage: documented, measured, and not renewed."""

    @pytest.mark.parametrize(("per_minute", "share"), [(100, 25), (10, 2), (3, 1), (1, 1)])
    async def test_one_share_for_each_process_and_no_more(
        self, server: ValkeyServer, replicas: Replicas, per_minute: int, share: int
    ) -> None:
        """All that was left is used up, then all four processes lose Valkey: each admits its share."""
        caller = Caller(1, 1, limits_of(per_minute, 1_000))
        opened = [await replicas.open(PROCESSES, policy=NO_BANS) for _ in range(PROCESSES)]
        together = sum([await admitted(replica, caller, per_minute) for replica in opened])
        assert together == per_minute
        async with broken("read-only", server, *opened):
            for replica in opened:
                await lost(replica)
            beyond = [await admitted(replica, caller, 2 * per_minute) for replica in opened]
            assert beyond == [share] * PROCESSES
        assert [await admitted(replica, caller, per_minute) for replica in opened] == [0] * PROCESSES

    @pytest.mark.parametrize("processes", [1, 4])
    async def test_two_outages_in_a_window_give_one_share(
        self, server: ValkeyServer, clock: NowClock, processes: int
    ) -> None:
        """It holds where the first one began before that window did: at most twice the limit in all."""
        free, last = Caller(1, 1, limits_of(60, 1_000)), 0.0

        def move_to(seconds: float) -> None:
            nonlocal last
            clock.advance(seconds - last)
            last = seconds

        async def lose(at: float, *bursts: tuple[float, int]) -> int:
            """Out of reach from here on until all of these were asked; how many passed."""
            move_to(at)
            passed = 0
            async with broken(FEW, server, *opened):
                for when, times in bursts:
                    move_to(when)
                    for replica in opened:
                        for _ in range(times):
                            decision = await replica.limiter.take(free)
                            assert decision is not None
                            passed += decision.allowed
            return passed

        clock.ms -= clock.ms % 60_000
        async with Replicas(server.url, clock, steered=True) as replicas:
            opened = [await replicas.open(processes, policy=NO_BANS) for _ in range(processes)]
            await opened[0].take(free)
            assert await lose(20, (20, 1)) == processes
            move_to(30)
            for replica in opened:  # each brings its pending counts
                await replica.take(free)
            move_to(61)
            shared = sum([await replica.use_up(free, 60) for replica in opened])
            assert shared == 60
            assert await lose(79, (79.9, 60), (80, 60), (95, 60), (120.9, 60)) <= 60

    @given(
        waits=st.lists(st.integers(0, 25_000), max_size=60),
        processes=st.sampled_from((1, 3, 100)),
        back_ms=st.integers(0, 90_000),
    )
    @settings(max_examples=40, deadline=None)
    def test_no_minute_has_more_than_a_share(self, waits: list[int], processes: int, back_ms: int) -> None:
        """Any 60 seconds of a process, wherever they begin; who waits as long as told passes."""

        async def run() -> None:
            clock = ManualClock()
            fallback = FallbackLimiter(clock, NO_BANS, processes)
            limit = max(1, 9 // processes)
            passed: list[int] = []
            for number, wait in enumerate(waits):
                clock.ms += wait
                if number == 40:
                    clock.ms -= back_ms
                    passed = []
                decision = fallback.take(Caller(1, 1, limits_of(9, 1_000_000)))
                if not decision.allowed:
                    clock.ms += decision.retry_after_seconds * 1_000
                    decision = fallback.take(Caller(1, 1, limits_of(9, 1_000_000)))
                assert decision.allowed
                passed.append(clock.ms // 1_000)
                assert sum(second > passed[-1] - 60 for second in passed) <= limit
                fallback.sweep()

        asyncio.run(run())

    @pytest.mark.parametrize(("seconds", "together"), [(5, 4), (120, 1)])
    async def test_restored_counts_are_added_to_those_of_their_window(
        self, clock: NowClock, seconds: int, together: int
    ) -> None:
        """A request took the counts along and failed, while another was admitted some seconds later: on the
        same day, or after midnight, where those of yesterday are not today's."""
        fallback = FallbackLimiter(clock, NO_BANS, PROCESSES)
        clock.ms += DAY_MS - clock.ms % DAY_MS - 60_000
        for _ in range(3):
            fallback.take(CALLER)
        pending, opened_ms = fallback.pending.pop(1, None), clock.ms
        assert pending is not None
        clock.advance(seconds)
        fallback.take(CALLER)
        fallback.restore_pending(1, pending)
        opened_ms = opened_ms if together > 1 else clock.ms
        restored = used_of((opened_ms, together), (clock.ms // DAY_MS, together))
        assert fallback.pending.pop(1, None) == restored
        assert 1 not in fallback.pending

    async def test_pending_counts_open_their_window_where_they_were_admitted(
        self, server: ValkeyServer, clock: NowClock
    ) -> None:
        """The minute resets 60 seconds after the first request that it counts, not after the outage."""
        async with Replicas(server.url, clock, steered=True) as replicas:
            replica = await replicas.open(PROCESSES, policy=NO_BANS)
            await replica.take(CALLER)
            clock.advance(60)  # that window is over
            first = clock.ms // 1_000
            async with broken(FEW, server, replica):
                for _ in range(3):
                    assert (await replica.limiter.take(CALLER)) is not None
                    clock.advance(5)
            clock.advance(20)
            minute = (await replica.take(CALLER)).windows[0]
            assert (minute.remaining, minute.reset_at) == (100 - 3 - 1, first + 60)
            clock.advance(first + 60 - clock.ms / 1_000)
            assert (await replica.take(CALLER)).windows[0].remaining == 99

    @pytest.mark.parametrize(
        ("before", "outage", "beside", "after"),
        [
            pytest.param(-30, -10, 5, 10, id="a minute over midnight"),
            pytest.param(-90, -70, None, 10, id="neither minute nor day"),
            pytest.param(-3_600, -3_500, None, -3_000, id="of the same day"),
        ],
    )
    async def test_pending_counts_are_of_their_own_minute_and_day(
        self, server: ValkeyServer, clock: NowClock, before: int, outage: int, beside: int | None, after: int
    ) -> None:
        """Pending counts belong to their own minute and day, as if one record had counted all requests. Times
        are in seconds after midnight; `beside` is that of another process, which met no outage."""
        midnight_ms, used = clock.ms - clock.ms % 86_400_000, AccountWindows()

        async def take(replica: Replica, at: int, times: int, *, tell: bool = True) -> Decision:
            clock.ms = midnight_ms + at * 1_000
            for _ in range(times):
                expected = decide(used, None, CALLER, NO_BANS, clock.ms)
                found = await (replica.take(CALLER) if tell else replica.limiter.take(CALLER))
            assert found is not None
            assert (expected.allowed, found.allowed) == (True, True)
            if tell:
                left = [[window.remaining for window in each.windows] for each in (found, expected)]
                assert left[0] == left[1]
                assert found.reset_at[-1] == expected.reset_at[-1]
            return found

        async with Replicas(server.url, clock, steered=True) as replicas:
            replica, other = [await replicas.open(PROCESSES, policy=NO_BANS) for _ in range(2)]
            await take(replica, before, 2)
            async with broken(FEW, server, replica):
                assert limits(await take(replica, outage, 3, tell=False)) == [SHARE, 250]
            if beside is not None:
                clock.ms = midnight_ms + beside * 1_000
                assert limits(await other.take(CALLER)) == [100, 1_000]
                decide(used, None, CALLER, NO_BANS, clock.ms)
            await take(replica, after, 1)

    async def test_what_could_not_be_counted_stays_pending(
        self, server: ValkeyServer, replicas: Replicas, clock: NowClock
    ) -> None:
        """The server goes again with the very request that brings the local count along: nothing is lost,
        and nothing that was counted in another window is counted in this one."""
        replica = await replicas.open(PROCESSES, policy=NO_BANS)
        for burst in (5, 7):
            async with broken(FEW, server, replica):
                assert await admitted(replica, CALLER, burst) == burst
        clock.advance(-120)  # in another minute of this process's clock, and on the same day
        async with broken(FEW, server, replica):
            assert (await replica.take(CALLER)).allowed
        after = await replica.take(CALLER)
        assert after.windows[-1].remaining == 1_000 - 5 - 7 - 1 - 1


class TestNoOutage:
    """What the limiter repairs by itself."""

    async def test_a_forgotten_script(self, server: ValkeyServer, replicas: Replicas) -> None:
        """SCRIPT FLUSH under load: it is sent along once more."""
        replica = await replicas.open()
        await admitted(replica, CALLER, 10)
        server.client("SCRIPT", "FLUSH")
        decisions = await asyncio.gather(*(replica.take(CALLER) for _ in range(10)))
        assert sorted(decision.windows[0].remaining for decision in decisions) == list(range(80, 90))
        server.client("SCRIPT", "FLUSH")
        async with replica.publisher.changing(catalogue=True):
            assert (await replica.take(CALLER)).versions.catalogue is None
        assert (replica.watch.reasons, replica.watch.local) == ([], 0)

    async def test_an_emptied_server_is_told_what_is_pending(
        self, server: ValkeyServer, replicas: Replicas
    ) -> None:
        """FLUSHALL after an outage, before the local count was brought along: it has no epoch then."""
        replica = await replicas.open(PROCESSES, policy=NO_BANS)
        async with broken(FEW, server, replica):
            assert await admitted(replica, CALLER, 5) == 5
        server.client("FLUSHALL")
        assert (await replica.take(CALLER)).windows[-1].remaining == 1_000 - 5 - 1
        assert len(replica.watch.reasons) == 1


class TestTimeout:
    """What is overdue, and what is only a pause of our own."""

    def test_the_ticks_add_up_to_the_timeout(self) -> None:
        """No answer within it is overdue: that takes all ticks that are remembered, and the last one."""
        whole = (connection._TICKS + 1) * connection._TICK
        assert whole == pytest.approx(1.0)

    async def test_a_pause_of_this_process_is_no_outage(self, server: ValkeyServer) -> None:
        """The event loop stood still for longer than the timeout, twice, while answers lay in the
        socket: they are read, and nothing is given up."""
        watch = Watch()
        client = await open_client(server.url, 0.5, watch)
        limiter = ValkeyLimiter(client, MemoryCounterStore(), ManualClock(), NO_BANS)
        await limiter.take(CALLER)
        for _ in range(2):
            asked = [asyncio.create_task(limiter.take(CALLER)) for _ in range(4)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            pause(0.6)
            for decision in await asyncio.gather(*asked):
                assert decision is not None
                assert decision.windows[0].limit == 100
        assert watch.reasons == []
        await client.close()


def waits(replica: Replica) -> bool:
    """Whether a request waits for anything at all before it is decided."""
    work = replica.limiter.take(CALLER)
    try:
        work.send(None)
    except StopIteration:
        return False
    work.close()
    return True


@pytest.mark.parametrize("name", ["hanging", "read-only"])
async def test_a_check_finds_the_outage_of_a_process_that_nobody_asks(
    name: str, server: ValkeyServer, replicas: Replicas
) -> None:
    """The gauge is right before a request has met the fault."""
    replica = await replicas.open(PROCESSES)
    await replica.client.check()
    assert replica.watch.reasons == []
    async with broken(name, server, replica):
        await replica.client.check()
        assert len(replica.watch.reasons) == 1


async def test_only_requests_on_their_way_wait(server: ValkeyServer, clock: NowClock) -> None:
    """A Valkey that hangs: those in flight wait for one timeout together, and nobody after them, also
    while the probe tries to connect to what hangs."""
    async with (
        open_proxy(server.socket) as proxy,
        Replicas(f"valkey://127.0.0.1:{proxy.port}", clock, steered=False) as replicas,
    ):
        replica = await replicas.open(PROCESSES, policy=NO_BANS)
        async with broken("hanging", server, replica):
            assert await admitted(replica, CALLER, 8) == 8
            assert not waits(replica)
            await until(lambda: proxy.accepted == 2)
            assert not waits(replica)
            assert (len(replica.watch.reasons), replica.watch.local) == (1, 8 + 2)


async def test_every_request_of_an_outage_is_refused(server: ValkeyServer, replicas: Replicas) -> None:
    """`limiter_outage = "refuse"`, for those who prefer 503 to a share: with a time to come back, and
    counted."""
    replica = await replicas.open(PROCESSES, refuse=True)
    await replica.take(CALLER)
    async with broken(FEW, server, replica):
        for _ in range(3):
            with pytest.raises(LimiterUnavailable) as refused:
                await replica.take(CALLER)
            assert (refused.value.status, refused.value.retry_after_seconds) == (503, 1)
        assert replica.watch.local == 3
    assert limits(await replica.take(CALLER)) == [100, 1_000]


class TestTheStart:
    """A service starts without Valkey, and finds it."""

    async def test_it_starts_in_an_outage(self, clock: NowClock) -> None:
        """Requests are decided by the share until the probe succeeds."""
        absent = ValkeyServer()
        async with Replicas(absent.url, clock, steered=False) as replicas:
            replica = await replicas.open(PROCESSES)
            assert limits(await replica.take(CALLER)) == [SHARE, 250]
            with absent.start():
                await replica.watch.back()
                assert limits(await replica.take(CALLER)) == [100, 1_000]

    async def test_something_that_is_not_valkey(self, clock: NowClock) -> None:
        """It talks of something else: an outage like any other, which says so."""

        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        other = await asyncio.start_server(babble, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]
        async with Replicas(f"valkey://127.0.0.1:{port}", clock, steered=False) as replicas:
            replica = await replicas.open(PROCESSES)
            assert limits(await replica.take(CALLER)) == [SHARE, 250]
            assert "protocol" in replica.watch.reasons[0]
        other.close()
