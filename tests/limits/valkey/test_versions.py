"""Versions in Valkey: what is kept is never used after a change, whatever happens to the writer (I5, I14)."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from petstore.core.keys import Caller
from petstore.core.versions import LEASE_SECONDS, NO_VERSIONS, Version, Versions
from petstore.limiter.valkey import publisher
from petstore.limiter.valkey.scripts import Script
from tests.support.clock import ManualClock
from tests.support.shared import Replica, Replicas
from tests.support.valkey import Client, ValkeyServer
from tests.support.waiting import until
from tests.support.windows import limits_of

CALLER = Caller(1, 1, limits_of(100_000, 1_000_000))
WRITER_SECONDS = 10


@pytest.fixture
async def writer(replicas: Replicas) -> Replica:
    return await replicas.open(2)


@pytest.fixture
async def reader(replicas: Replicas) -> Replica:
    return await replicas.open(2)


async def seen(replica: Replica) -> Versions:
    """The versions that the next decision brings."""
    return (await replica.take(CALLER)).versions


def numbers(replicas: Replicas) -> list[int]:
    """Both counters as they are in Valkey, without the lease."""
    client = Client(replicas.url)
    return [int(client("GET", f"{{petstore}}:version:{name}")) for name in ("catalogue", "keyring")]


async def stands(replica: Replica, keyring: Version | None) -> bool:
    """Whether a caller that was kept under this version may be used."""
    assert keyring is not None
    return await replica.ask(CALLER, keyring) is not None


class TestChanging:
    """Around a change the version is unknown, and after it another one."""

    @pytest.mark.parametrize(
        ("catalogue", "keyring"), [(True, False), (False, True), (True, True), (False, False)]
    )
    async def test_only_what_is_named_moves(
        self, writer: Replica, reader: Replica, catalogue: bool, keyring: bool
    ) -> None:
        """Unknown while the writer is at work, moved when it has settled; the other one stands."""
        before = await seen(reader)
        async with writer.publisher.changing(catalogue=catalogue, keyring=keyring):
            within = await seen(reader)
            assert (within.catalogue is None, within.keyring is None) == (catalogue, keyring)
        after = await seen(reader)
        assert None not in (after.catalogue, after.keyring)
        assert (after.catalogue != before.catalogue, after.keyring != before.keyring) == (catalogue, keyring)

    async def test_a_change_that_fails_settles_too(self, writer: Replica, reader: Replica) -> None:
        """Nobody knows whether it was committed: the version moves."""
        before = await seen(reader)
        with pytest.raises(ConnectionError):
            async with writer.publisher.changing(catalogue=True):
                raise ConnectionError
        after = await seen(reader)
        assert after.catalogue not in (None, before.catalogue)

    async def test_two_writers_at_a_time(self, writer: Replica, reader: Replica) -> None:
        """Unknown until the last one has settled."""
        async with writer.publisher.changing(catalogue=True):
            async with reader.publisher.changing(catalogue=True):
                pass
            assert (await seen(reader)).catalogue is None
        assert (await seen(reader)).catalogue is not None

    async def test_a_kept_caller_does_not_stand_during_or_after_a_change(
        self, writer: Replica, reader: Replica
    ) -> None:
        """Nothing is taken for it; before the change it stood."""
        kept = (await seen(reader)).keyring
        assert await stands(reader, kept)
        async with writer.publisher.changing(keyring=True):
            assert not await stands(reader, kept)
        assert not await stands(reader, kept)
        assert await stands(reader, (await seen(reader)).keyring)
        assert (await reader.take(CALLER)).windows[0].remaining == 100_000 - 5


class TestADeadWriter:
    """It died between its commit and the end of its change: nobody ever settles."""

    async def test_unknown_for_its_time_then_another_version(
        self, replicas: Replicas, writer: Replica, reader: Replica, clock: ManualClock
    ) -> None:
        """Everybody reads the store for ten seconds; the version from before never comes back."""
        await seen(reader)
        before = numbers(replicas)
        change = writer.publisher.changing(catalogue=True, keyring=True)
        await change.__aenter__()
        clock.advance(WRITER_SECONDS - 0.001)
        assert await seen(reader) == Versions(None, None)
        clock.advance(0.001)
        assert None not in ((await seen(reader)).catalogue, (await seen(reader)).keyring)
        assert all(now > then for now, then in zip(numbers(replicas), before, strict=True))

    async def test_a_writer_that_comes_back_late_moves_it_once_more(
        self, writer: Replica, reader: Replica, clock: ManualClock
    ) -> None:
        """It was slow, not dead: what it committed after its time was up is not missed."""
        change = writer.publisher.changing(catalogue=True)
        await change.__aenter__()
        clock.advance(WRITER_SECONDS)
        given_up = await seen(reader)
        await change.__aexit__(None, None, None)
        assert (await seen(reader)).catalogue not in (None, given_up.catalogue)


class TestAnEmptiedServer:
    """FLUSHALL, an eviction, a failover to a replica that had nothing."""

    async def test_no_version_comes_again(self, replicas: Replicas, reader: Replica) -> None:
        """They begin with the time, so that what was kept before is never taken for true."""
        assert replicas.time is not None
        versions = {(await seen(reader)).catalogue}
        for _ in range(5):
            replicas.clock.ms += 1
            Client(replicas.url)("FLUSHDB")
            replicas.time.forget()
            versions.add((await seen(reader)).catalogue)
        assert len(versions) == 6

    async def test_a_clock_behind_does_not_repeat_one(
        self, replicas: Replicas, writer: Replica, reader: Replica, clock: ManualClock
    ) -> None:
        """A version only grows, also where the server's clock went back."""
        await seen(reader)
        before = numbers(replicas)
        clock.advance(-30)
        writer.tell_time()
        async with writer.publisher.changing(catalogue=True):
            pass
        assert numbers(replicas) == [before[0] + 1, before[1]]


class TestLease:
    """Whatever happens to the counters, nothing is kept for more than five seconds."""

    async def test_a_version_ends_with_its_lease(self, reader: Replica, clock: ManualClock) -> None:
        """The number is the same and the version is not; what was kept is read again."""
        clock.ms += -clock.ms % round(LEASE_SECONDS * 1_000)
        before = await seen(reader)
        clock.advance(LEASE_SECONDS - 0.001)
        assert await seen(reader) == before
        assert await stands(reader, before.keyring)
        clock.advance(0.001)
        after = await seen(reader)
        assert after.catalogue != before.catalogue
        assert not await stands(reader, before.keyring)
        assert reader.limiter.keyring_version() == after.keyring

    async def test_it_ends_by_the_servers_clock_too(self, reader: Replica, clock: ManualClock) -> None:
        """This machine was suspended, and its clocks with it: what it kept is read again."""
        before = await seen(reader)
        assert await stands(reader, before.keyring)
        for seconds in (LEASE_SECONDS, -2 * LEASE_SECONDS):  # one that was set back is not trusted either
            kept = (await reader.limiter.take(CALLER)).versions  # type: ignore[union-attr]
            clock.advance(seconds)
            reader.tell_time()
            clock.advance(-seconds)
            if seconds > 0:
                assert await reader.limiter.take(CALLER, kept.keyring) is None
            after = (await reader.limiter.take(CALLER)).versions  # type: ignore[union-attr]
            assert after.catalogue not in (None, kept.catalogue)
            assert after.keyring not in (None, kept.keyring)

    async def test_before_the_first_decision_no_version_is_known(self, reader: Replica) -> None:
        """The first caller is not kept; the second one is."""
        assert reader.limiter.keyring_version() is None
        assert (await seen(reader)).keyring == reader.limiter.keyring_version()


class TestOutage:
    """A writer that can't reach Valkey goes on, and tells when it can."""

    async def test_what_was_kept_before_an_outage_is_not_used_after_it(
        self, server: ValkeyServer, clock: ManualClock
    ) -> None:
        """Some writer may have had nobody to tell; the versions are the same, the lease is another."""
        async with Replicas(server.url, clock, steered=False) as replicas:
            reader = await replicas.open()
            before = await seen(reader)
            server.client("CLIENT", "KILL", "TYPE", "normal")
            await until(lambda: bool(reader.watch.reasons))
            assert await seen(reader) == NO_VERSIONS
            await reader.watch.back()
            after = await seen(reader)
            assert after.keyring != before.keyring
            assert not await stands(reader, before.keyring)

    async def test_an_answer_from_before_an_outage_is_of_before_it(
        self, reader: Replica, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It arrived, then an outage began and ended, and only then its request went on."""
        client = reader.client
        call = client.call

        async def late(script: Script, evalsha: bytes) -> object:
            reply = await call(script, evalsha)
            client.outages += 1
            return reply

        monkeypatch.setattr(client, "call", late)
        before = await seen(reader)
        monkeypatch.undo()
        after = await seen(reader)
        assert before.catalogue != after.catalogue
        assert not await stands(reader, before.keyring)

    async def test_a_change_during_an_outage_is_told_after_it(
        self, server: ValkeyServer, clock: ManualClock
    ) -> None:
        """The service does not wait for it; another replica that kept its link learns of it then."""
        async with Replicas(server.url, clock, steered=False) as replicas:
            writer, reader = await replicas.open(2), await replicas.open(2)
            before = await seen(reader)
            assert await seen(writer) != NO_VERSIONS
            (number, _) = numbers(replicas)  # without the lease, which ends by itself
            writers = re.findall(rb"id=(\d+) .* name=petstore ", server.client("CLIENT", "LIST"))
            server.client("CLIENT", "KILL", "ID", min(map(int, writers)))
            await until(lambda: bool(writer.watch.reasons))
            async with writer.publisher.changing(catalogue=True):
                pass
            assert await seen(reader) == before
            await writer.watch.back()
            await until(lambda: numbers(replicas)[0] > number)
            assert (await seen(reader)).catalogue != before.catalogue
            assert reader.watch.reasons == []

    async def test_a_change_of_keys_waits_until_nobody_uses_what_was_kept(
        self, server: ValkeyServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """I14: the writer alone may be cut off, and others go on with a key that the console has revoked."""
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        async with Replicas(server.url, clock, steered=False) as replicas:
            writer = await replicas.open()
            await writer.client.close()
            monkeypatch.setattr(publisher, "asyncio", SimpleNamespace(sleep=sleep))
            async with writer.publisher.changing(catalogue=True):
                pass
            assert slept == []
            async with writer.publisher.changing(keyring=True):
                assert slept == []
            assert slept == [LEASE_SECONDS]


async def test_a_difference_is_told_once_until_it_is_over(
    replicas: Replicas, reader: Replica, clock: ManualClock
) -> None:
    """A difference of the clocks above two seconds is reported once until it is over, to the operator, who
    has to correct them. Every lease looks at the difference again."""
    for seconds_behind in (0, 2, 3, 30, 0, -4):
        clock.advance(20 * LEASE_SECONDS)
        reader.tell_time()
        clock.advance(-seconds_behind)
        assert (await reader.limiter.take(CALLER)) is not None
        clock.advance(seconds_behind)
    assert reader.watch.ahead == [3, -4]
