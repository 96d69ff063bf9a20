"""A Valkey that comes back with an older data set: limits and bans never go backwards by more than a flush.

What the store has is about a second old. So a process that dies with counts that it has not written costs
these, and nothing else does, whichever copy of the data comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.decision import Decision
from petstore.core.limits.usage import UsageChanges, UsageMeter
from petstore.core.limits.windows import AccountWindows
from petstore.limiter.valkey import recovery
from petstore.limiter.valkey.scripts import CATALOGUE, EPOCH, HISTORY, KEYRING
from petstore.ops.flusher import CounterFlusher
from tests.support.clock import ManualClock
from tests.support.oldset import play
from tests.support.proxy import Proxy, open_proxy
from tests.support.report import Report
from tests.support.shared import Replica, Replicas
from tests.support.valkey import Client, ValkeyServer
from tests.support.waiting import until, wait_for
from tests.support.windows import limits_of, used_of
from tools.servers.ports import free_port

CALLER = Caller(1, 1, limits_of(500, 500))
BUSY = BanPolicy(strikes_allowed=2, grace_ms=0)
ONE_A_MINUTE = Caller(1, 1, limits_of(1, 1_000))
ANOTHER = Caller(9, 9, limits_of(100, 1_000))


@pytest.fixture
async def replicas(server: ValkeyServer, clock: ManualClock) -> AsyncIterator[Replicas]:
    async with Replicas(server.url, clock, steered=False) as opened:
        yield opened


async def admitted(replica: Replica, times: int) -> int:
    """How many of so many simultaneous requests pass."""
    decisions = await asyncio.gather(*(replica.take(CALLER) for _ in range(times)))
    return sum(decision.allowed for decision in decisions)


async def flush(replicas: Replicas, replica: Replica) -> None:
    """What the flusher does about once a second."""
    await replicas.counters.merge(replica.limiter.drain(), UsageChanges())


async def restart(server: ValkeyServer, *replicas: Replica) -> None:
    """kill -9, and up again with what is on the disk; all of these have noticed."""
    server.kill()
    for replica in replicas:
        await until(lambda replica=replica: bool(replica.watch.reasons))  # type: ignore[misc]
    server.start()
    for replica in replicas:
        await replica.watch.back()


async def ban(replica: Replica) -> Decision:
    """Go on until the ban; the grace is a millisecond of the server's clock."""
    while not (decision := await replica.take(ONE_A_MINUTE)).banned:
        pass
    return decision


class TestASnapshot:
    """`save` without `appendonly`: a restart brings back the last snapshot."""

    async def test_what_the_process_itself_saw_needs_no_flush(
        self, server: ValkeyServer, replicas: Replicas
    ) -> None:
        """The process knows its last batches."""
        replica = await replicas.open()
        await admitted(replica, 50)
        server.client("SAVE")
        await admitted(replica, 450)
        await restart(server, replica)
        assert await admitted(replica, 100) == 0

    async def test_what_the_counter_store_has_refused_so_far_is_known_too(
        self, server: ValkeyServer, replicas: Replicas, clock: ManualClock
    ) -> None:
        """The store's disk is full for many rounds of the flusher; and once it takes all of them, that
        stands."""
        replica = await replicas.open()
        full = True

        async def save(state: LimiterState, usage: UsageChanges) -> None:
            if full:
                raise StoreUnavailable("its disk is full")
            await replicas.counters.merge(state, usage)

        async def nothing(*_: object) -> None:
            pass

        flusher = CounterFlusher(
            limiter=replica.limiter,
            meter=UsageMeter(),
            save=save,
            purge=nothing,
            try_write=nothing,
            each_round=(),
            clock=clock,
        )
        assert await admitted(replica, 400) == 400
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await flusher.save()
        server.client("FLUSHALL")
        assert await admitted(replica, 500) == 100
        full = False
        await flusher.save()
        server.client("FLUSHALL")
        assert await admitted(await replicas.open(), 100) == 0

    async def test_a_ban_that_the_counter_store_does_not_know_holds_too(
        self, server: ValkeyServer, replicas: Replicas
    ) -> None:
        """The snapshot has it and the counter store an older one: the later of both stands, whole."""
        replica = await replicas.open(policy=BUSY)
        older = BanState(level=1, banned_from_ms=1_000, banned_until_ms=61_000)
        await replicas.counters.merge(LimiterState({}, {1: older}), UsageChanges())
        banned = await ban(replica)
        server.client("SAVE")
        await restart(server, replica)
        again = await (await replicas.open(policy=BUSY)).take(ONE_A_MINUTE)
        assert again.banned
        assert again.binding.reset_at == banned.binding.reset_at

    @pytest.mark.parametrize(("stored_of_day", "used_of_day"), [(77, 78), (7, 21)])
    async def test_windows_of_the_record_and_of_the_counter_store_are_merged_each_by_itself(
        self, server: ValkeyServer, replicas: Replicas, stored_of_day: int, used_of_day: int
    ) -> None:
        """The record has the later minute; of the same day the greater count stays, whichever has it."""
        replica = await replicas.open()
        await admitted(replica, 20)
        server.client("SAVE")
        day = (await replica.take(CALLER)).now_ms // DAY_MS
        replica.limiter.drain()
        replica.limiter.saved()  # so that it forgets what it saw
        stored = used_of((1_000, 400), (day, stored_of_day))
        await replicas.counters.merge(LimiterState({1: stored}), UsageChanges())
        await restart(server, replica)
        decision = await replica.take(CALLER)
        assert [decision.remaining[0], decision.remaining[-1]] == [500 - 21, 500 - used_of_day]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (("--save", "3600 1"), 1),
        (("--save", "3600 1", "--appendonly", "yes"), 0),
        ((), 0),
        (("--save", "3600 1", "--user", "default", "on", "nopass", "~*", "+@all", "-config"), 0),
    ],
)
async def test_snapshots_without_a_log_are_told(
    clock: ManualClock, settings: tuple[str, ...], told: int
) -> None:
    """Each process reports snapshots without a log once; where the server does not say, nothing fails."""
    with ValkeyServer(*settings).start() as server:
        async with Replicas(server.url, clock, steered=False) as replicas:
            replica = await replicas.open()
            assert (await replica.take(CALLER)).allowed
            assert (replica.watch.snapshots_only, replica.watch.reasons) == (told, [])


async def test_counts_stand_and_the_counter_store_is_asked_once(clock: ManualClock) -> None:
    """`appendonly yes`: nothing was lost, even what no counter store has heard of yet, and a restart costs
    one question for each account."""
    with ValkeyServer("--appendonly", "yes", "--appendfsync", "always").start() as server:
        async with Replicas(server.url, clock, steered=False) as replicas:
            one, other = await replicas.open(), await replicas.open()
            assert await admitted(one, 300) == 300
            asked = replicas.counters.loads
            await restart(server, one, other)
            left = [(await replica.take(CALLER)).windows[0].remaining for replica in (other, one, other)]
            assert left == [199, 198, 197]
            assert replicas.counters.loads == asked + 1


class Pair:
    """A primary and its replica, and one address that leads to one of them."""

    def __init__(self, folder: Path) -> None:
        self.ports = free_port(), free_port()
        self.primary, self.standby = (
            ValkeyServer("--port", str(port), "--repl-diskless-sync-delay", "0").start()
            for port in self.ports
        )
        self.address = folder / "address"
        self.lead_to(self.primary)

    def lead_to(self, server: ValkeyServer) -> None:
        """The address is this one's from now on."""
        self.address.unlink(missing_ok=True)
        self.address.symlink_to(server.socket)

    def drop(self) -> None:
        self.primary.drop()
        self.standby.drop()


def follow(follower: ValkeyServer, port: int, known: tuple[Client, bytes]) -> None:
    """Become a replica of who listens at this port, and have all that it has."""
    follower.client("REPLICAOF", "127.0.0.1", port)
    leader, key = known
    wait_for(lambda: b"master_link_status:up" in follower.client("INFO", "replication"), "the replica's link")
    wait_for(lambda: follower.client("GET", key) == leader("GET", key), "the replica to catch up")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    opened = Pair(tmp_path)
    yield opened
    opened.drop()


@asynccontextmanager
async def serving(pair: Pair, clock: ManualClock) -> AsyncIterator[Replicas]:
    async with Replicas(f"unix://{pair.address}", clock, steered=False) as replicas:
        yield replicas


async def linked(pair: Pair, proxy: Proxy) -> None:
    """The standby follows the primary through the proxy, and has caught up."""
    loop = asyncio.get_running_loop()
    record = (pair.primary.client, b"{petstore}:windows:1")
    await loop.run_in_executor(None, follow, pair.standby, proxy.port, record)


class TestManyAccounts:
    """All of them are asked for at once."""

    async def test_the_counter_store_is_asked_by_a_few_at_a_time(
        self, server: ValkeyServer, replicas: Replicas
    ) -> None:
        """A restart of Valkey does not fill the database's pool, which other requests need."""
        load_for, asking, most = replicas.counters.load_for, 0, 0

        async def slow(*arguments: int) -> tuple[AccountWindows | None, BanState | None]:
            nonlocal asking, most
            asking += 1
            most = max(most, asking)
            for _ in range(5):
                await asyncio.sleep(0)
            asking -= 1
            return await load_for(*arguments)

        replicas.counters.load_for = slow  # type: ignore[assignment,method-assign]
        replica = await replicas.open()
        for round_ in (1, 2):
            callers = [Caller(number, number, limits_of(10, 10)) for number in range(1, 301)]
            decisions = await asyncio.gather(*(replica.take(caller) for caller in callers))
            assert {decision.windows[0].remaining for decision in decisions} == {10 - round_}
            server.client("FLUSHALL")
        assert 1 < most <= 16
        assert replicas.counters.loads == 600

    async def test_a_counter_store_that_does_not_answer_is_not_waited_for_in_turns(
        self, server: ValkeyServer, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who has waited for as long as a statement may take is told so."""
        monkeypatch.setattr(recovery, "_WAIT_SECONDS", 0.2)
        never = asyncio.Event()

        async def hang(*_: int) -> tuple[AccountWindows | None, BanState | None]:
            await never.wait()
            raise StoreUnavailable("no answer")

        replicas.counters.load_for = hang  # type: ignore[assignment,method-assign]
        replica = await replicas.open()
        tasks = [asyncio.create_task(replica.take(Caller(n, n, limits_of(10, 10)))) for n in range(1, 101)]
        await until(lambda: sum(task.done() for task in tasks) >= 84)
        never.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
        assert sum("Too many" in str(outcome) for outcome in outcomes) == 84


class TestAReplica:
    """It was behind when it became the primary, or it gave its older data to a primary."""

    async def test_one_that_lagged_and_was_promoted(self, pair: Pair, clock: ManualClock) -> None:
        """One address leads to both; what the counter store has was not lost."""
        async with serving(pair, clock) as replicas, open_proxy(("127.0.0.1", pair.ports[0])) as proxy:
            replica = await replicas.open()
            await admitted(replica, 50)
            await linked(pair, proxy)
            proxy.hold()
            assert await admitted(replica, 450) == 450
            await flush(replicas, replica)
            pair.primary.kill()
            await until(lambda: bool(replica.watch.reasons))
            pair.standby.client("REPLICAOF", "NO", "ONE")
            pair.lead_to(pair.standby)
            await replica.watch.back()
            assert await admitted(replica, 100) == 0
            assert await admitted(await replicas.open(), 100) == 0

    @pytest.mark.slow
    async def test_a_process_that_never_noticed(self, pair: Pair, clock: ManualClock) -> None:
        """The primary took its data from an older copy and became the primary again. One process met that;
        the other one kept its connection, and believes no older record and no older version either."""
        async with serving(pair, clock) as replicas, open_proxy(("127.0.0.1", pair.ports[0])) as proxy:
            one, other = await replicas.open(), await replicas.open()
            await admitted(one, 50)
            kept = (await other.take(ANOTHER)).versions.keyring
            await linked(pair, proxy)
            pair.standby.client("REPLICAOF", "NO", "ONE")
            async with one.publisher.changing(keyring=True):
                pass  # a key is revoked
            assert await admitted(one, 450) == 450
            await flush(replicas, one)
            loop = asyncio.get_running_loop()
            record = (pair.standby.client, b"{petstore}:windows:1")
            await loop.run_in_executor(None, follow, pair.primary, pair.ports[1], record)
            await one.take(ANOTHER)
            await until(lambda: bool(one.watch.reasons))
            pair.primary.client("REPLICAOF", "NO", "ONE")
            await one.watch.back()
            assert await other.ask(ANOTHER, kept) is None
            assert await admitted(other, 100) == 0
            assert other.watch.reasons == []


class TestTheEpoch:
    """What tells one data set from another."""

    async def test_it_stands_while_the_server_does(self, server: ValkeyServer, replicas: Replicas) -> None:
        """However many processes come and go: nothing is asked twice, and nobody is alarmed."""
        for _ in range(3):
            replica = await replicas.open()
            await replica.take(CALLER)
            assert replica.watch.data_sets == []
        assert replicas.counters.loads == 1

    async def test_another_data_set_is_told_once(self, server: ValkeyServer, replicas: Replicas) -> None:
        """The first process that comes back tells it."""
        opened = [await replicas.open() for _ in range(3)]
        server.client("SAVE")
        await restart(server, *opened)
        assert [known for replica in opened for known in replica.watch.data_sets] == [True]

    async def test_with_it_the_versions_move(self, server: ValkeyServer, replicas: Replicas) -> None:
        """They may be from before a change: what a process cached under them must not count as true again."""
        replica = await replicas.open()
        await replica.take(CALLER)
        server.client("SAVE")
        before = server.client("MGET", CATALOGUE, KEYRING)
        await restart(server, replica)
        after = server.client("MGET", CATALOGUE, KEYRING)
        assert all(int(now) > int(then) for now, then in zip(after, before, strict=True))

    @pytest.mark.parametrize("lost", [(EPOCH,), (HISTORY,), (EPOCH, HISTORY)])
    async def test_its_keys_may_be_evicted(
        self, server: ValkeyServer, replicas: Replicas, lost: tuple[bytes, ...]
    ) -> None:
        """The records are still right; no request fails, and none is handed out twice."""
        replica = await replicas.open()
        assert await admitted(replica, 100) == 100
        asked = replicas.counters.loads
        server.client("DEL", *lost)
        other = await replicas.open()
        assert (await other.take(CALLER)).windows[0].remaining == 399
        assert (await replica.take(CALLER)).windows[0].remaining == 398
        assert replicas.counters.loads == asked + 1

    @pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "0x1p9", "007", "9" * 16, "9" * 40])
    async def test_what_others_write_there_begins_another(
        self, server: ValkeyServer, replicas: Replicas, text: str
    ) -> None:
        """An epoch that others write acts as an eviction: no request fails, and the records are merged."""
        replica = await replicas.open()
        assert await admitted(replica, 100) == 100
        server.client("SET", EPOCH, text)
        assert (await replica.take(CALLER)).windows[0].remaining == 399
        assert (await replica.take(CALLER)).windows[0].remaining == 398
        assert replica.watch.reasons == []

    async def test_a_server_that_may_not_say_is_doubted_at_each_connection(
        self, server: ValkeyServer, replicas: Replicas
    ) -> None:
        """The user has no INFO: an older data set is found out all the same."""
        server.client("ACL", "SETUSER", "default", "-info")
        replica = await replicas.open()
        await admitted(replica, 50)
        server.client("SAVE")
        assert await admitted(replica, 500) == 450
        await flush(replicas, replica)
        server.kill()
        await until(lambda: bool(replica.watch.reasons))
        server.start()
        server.client("ACL", "SETUSER", "default", "-info")
        await replica.watch.back()
        assert await admitted(replica, 100) == 0
        assert replica.watch.data_sets[0] is False

    async def test_records_from_before_it_are_not_taken(
        self, server: ValkeyServer, replicas: Replicas
    ) -> None:
        """The counter store is asked; before it has answered, others count more, and the data set is lost."""
        replica = await replicas.open()
        load_for, asked, go_on = replicas.counters.load_for, asyncio.Event(), asyncio.Event()

        async def slow(*arguments: int) -> tuple[AccountWindows | None, BanState | None]:
            told = await load_for(*arguments)
            asked.set()
            await go_on.wait()
            return told

        replicas.counters.load_for = slow  # type: ignore[assignment,method-assign]
        waiting = asyncio.create_task(replica.take(CALLER))
        await asked.wait()
        used = used_of((0, 0), (int(server.client("TIME")[0]) * 1_000 // DAY_MS, 500))
        await replicas.counters.merge(LimiterState({1: used}), UsageChanges())
        server.client("FLUSHALL")
        go_on.set()
        assert not (await waiting).allowed


async def test_a_round_of_random_losses(server: ValkeyServer) -> None:
    """Saved, killed, put back, emptied, with processes that come and go: the short form of `oldset`."""
    report = Report()
    await play(server, 6, report)
    happened = ("restarts with older data", "times emptied", "bans looked up again", "admitted")
    assert [report.counts[what] > 0 for what in happened] == [True] * 4
    assert report.faults == []
