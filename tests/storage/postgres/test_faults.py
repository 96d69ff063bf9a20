"""PostgreSQL that hangs, breaks off and refuses: only StoreUnavailable comes out, and the store recovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from petstore.core.errors import OutcomeUnknown, StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.pets import NewPet, PetChange, PetQuery, PetStatus
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.connection import connect
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries, written
from tests.support.postgres import by_way_of, listening_address, run
from tests.support.proxy import Proxy, open_proxy
from tests.support.waiting import until

REX = NewPet("Rex", 1)
LOST = NewPet("a needle on the wire", 2)
KEY = IdempotencyKey(1, "order-1")
OUTCOME_UNKNOWN = (
    "; whether this write was kept is unknown."
    " Look before repeating it, or retry with the same Idempotency-Key."
)


def open_store(url: str, **options: Any) -> Store:
    return backend_for(url, postgres=PostgresOptions(**options)).open(ManualClock())


@pytest.fixture
async def store(database: str, proxy: Proxy) -> AsyncIterator[Store]:
    """Behind the proxy, with an account, a key and one animal; its patience is a second and a half."""
    migrated = open_store(database)  # the proxy lives on this event loop, which opening a store holds up
    await migrated.accounts.add("shop", FREE, ACTOR)
    await migrated.keys.issue("shop", "test", ACTOR)
    await migrated.pets.add(REX, ACTOR)
    await migrated.close()
    opened = await asyncio.to_thread(
        open_store, by_way_of(database, proxy.port), timeout_ms=1_500, connections=4
    )
    assert [pet.name for pet in (await opened.pets.page(PetQuery())).pets] == ["Rex"]
    yield opened
    proxy.release()
    await opened.close()


async def names(store: Store) -> list[str]:
    return [pet.name for pet in (await store.pets.page(PetQuery(limit=100))).pets]


class TestCutAtTheCommit:
    """The connection breaks when the server has committed and before its answer arrives."""

    async def test_the_outcome_is_said_to_be_unknown(self, proxy: Proxy, store: Store) -> None:
        """It was kept; who was not told so is told to look, and the next write works."""
        proxy.cut_before_the_answer(LOST.name.encode())
        with pytest.raises(OutcomeUnknown) as failure:
            await store.pets.add(LOST, ACTOR)
        assert failure.value.message == f"The store failed: the connection to it broke{OUTCOME_UNKNOWN}"
        assert proxy.cuts == 1
        assert await names(store) == ["Rex", LOST.name]

    async def test_a_retry_with_the_same_key_finds_the_one_animal(self, proxy: Proxy, store: Store) -> None:
        """I6: however often the answer gets lost."""
        for _ in range(3):
            proxy.cut_before_the_answer(KEY.text.encode())
            with pytest.raises(OutcomeUnknown, match="Idempotency-Key"):
                await store.pets.add(LOST, ACTOR, KEY)
        found = await store.pets.add(LOST, ACTOR, KEY)
        assert (found.pet.id, found.replayed) == (2, True)
        assert await names(store) == ["Rex", LOST.name]

    async def test_a_transaction_of_several_statements(self, proxy: Proxy, store: Store) -> None:
        """A change of status: unknown when its COMMIT was sent, and then it may well have happened."""
        proxy.cut_before_the_answer(b"COMMIT")
        with pytest.raises(OutcomeUnknown, match="kept is unknown"):
            await store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff")
        assert (await entries(store, "pet:1"))[-1].after == {"status": "sold"}

    async def test_counters_are_not_added_twice_in_silence(self, proxy: Proxy, store: Store) -> None:
        """A batch of usage of unknown outcome is an error for its writer, and not repeated by the store."""
        await store.counters.save(*_usage(1))
        proxy.cut_before_the_answer((7_777).to_bytes(8, "big"))
        with pytest.raises(OutcomeUnknown, match="kept is unknown"):
            await store.counters.save(*_usage(7_777))
        assert (await store.usage.report(0, 1)).days[0].requests == 7_778


def _usage(requests: int) -> tuple[LimiterState, UsageChanges]:
    return LimiterState(), UsageChanges({(1, 7): DailyUsage(7, requests)})


class TestCutElsewhere:
    """The connection breaks when nothing can have been kept, or nothing was to be."""

    async def test_a_transaction_that_broke_before_its_commit_is_repeated(
        self, proxy: Proxy, store: Store
    ) -> None:
        """Nothing of it was kept, so nobody needs to know."""
        proxy.cut_before_the_answer(b"BEGIN")
        assert (
            await store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff")
        ).status is PetStatus.SOLD
        assert proxy.cuts == 1
        assert await written(store, "pet:1") == ["pet.added pet:1", "pet.changed pet:1"]

    async def test_a_read_that_broke_is_repeated(self, proxy: Proxy, store: Store) -> None:
        """A read that broke is repeated at once on another connection."""
        await store.pets.get_or_none(123_456)  # prepares the statement
        proxy.cut_before_the_answer((123_456).to_bytes(8, "big"))
        assert await store.pets.get_or_none(123_456) is None
        assert proxy.cuts == 1

    @pytest.mark.parametrize("is_announced", [False, True])
    async def test_connections_that_broke_while_idle_cost_nobody_a_request(
        self, proxy: Proxy, store: Store, is_announced: bool
    ) -> None:
        """Four connections are cut, four writes and four reads go on. Also where an administrator ends them:
        the server's last message is here, the close is not."""
        await asyncio.gather(*(names(store) for _ in range(4)))
        if is_announced:
            fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
            await proxy.say(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
        else:
            proxy.cut()
            await until(lambda: not proxy.open_lines)
        await asyncio.gather(
            *(store.pets.add(REX, ACTOR) for _ in range(4)), *(names(store) for _ in range(4))
        )
        assert len(await names(store)) == 5

    async def test_a_server_that_takes_no_connections_is_told_at_once(
        self, proxy: Proxy, store: Store
    ) -> None:
        """When it does again, the next request succeeds."""
        proxy.refuse()
        proxy.cut()
        await until(lambda: not proxy.open_lines)
        for attempt in (store.pets.page(PetQuery()), store.probe(), store.versions.current()):
            with pytest.raises(StoreUnavailable, match="it can't be reached"):
                await attempt
        with pytest.raises(StoreUnavailable, match="it can't be reached; nothing was stored"):
            await store.pets.add(REX, ACTOR)
        await proxy.listen()
        assert await names(store) == ["Rex"]


class TestHanging:
    """Nothing answers any more."""

    async def test_a_write_that_hangs_on_its_way_is_unknown(self, proxy: Proxy, store: Store) -> None:
        """The server gets it later, when nobody waits any more. A new connection hangs, and ends, as well."""
        await asyncio.gather(*(store.pets.add(REX, ACTOR) for _ in range(4)))  # connections that are open
        proxy.hold()
        with pytest.raises(OutcomeUnknown, match="in time; whether this write was kept is unknown"):
            await store.pets.add(LOST, ACTOR)
        with pytest.raises(StoreUnavailable, match="in time"):
            await store.pets.add(REX, ACTOR)

    async def test_after_one_silence_no_idle_connection_is_trusted(self, proxy: Proxy, store: Store) -> None:
        """When the way is good again, new connections are made: the next requests succeed at once."""
        await asyncio.gather(*(store.pets.get_or_none(1) for _ in range(4)))
        proxy.hold()
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await store.pets.get_or_none(1)
        before = proxy.accepted
        proxy.release()
        found = await asyncio.gather(*(store.pets.get_or_none(1) for _ in range(4)))
        assert [pet and pet.name for pet in found] == ["Rex"] * 4
        assert proxy.accepted >= before + 4

    async def test_a_first_server_that_hangs_leaves_time_for_the_second(
        self, database: str, proxy: Proxy, store: Store
    ) -> None:
        """A first server that hangs, as the machine of the old primary after a failover, which refuses
        nothing, leaves time for the second. The two are named in any of the ways that PostgreSQL knows."""
        proxy.hold()

        async def read(place: str, options: str) -> list[str]:
            url = by_way_of(database, second.port).replace(f"127.0.0.1:{second.port}", place.format(*ports))
            if options:
                url += f"{'&' if '?' in url else '?'}{options.format(*ports)}"
            both = await asyncio.to_thread(open_store, url, timeout_ms=3_000)
            found = await names(both)
            await both.close()
            return found

        async with open_proxy(listening_address(database)) as second:
            ports = proxy.port, second.port
            read_by_each = await asyncio.gather(
                read("127.0.0.1:{},127.0.0.1:{}", ""),
                read("", "host=127.0.0.1:{},127.0.0.1:{}"),
                read("", "host=127.0.0.1,127.0.0.1&port={},{}"),
            )
        assert list(read_by_each) == [["Rex"]] * 3

    async def test_a_first_server_that_hangs_up_leads_to_the_second(self, database: str) -> None:
        """A first server that hangs up, as a load balancer may, leads to the second if TLS is not asked."""
        async with (
            await asyncio.start_server(lambda _, client: client.close(), "127.0.0.1", 0) as gone,
            open_proxy(listening_address(database)) as second,
        ):
            servers = f"127.0.0.1:{gone.sockets[0].getsockname()[1]},127.0.0.1:{second.port}"
            url = by_way_of(database, second.port).replace(f"127.0.0.1:{second.port}", servers)
            url += f"{'&' if '?' in url else '?'}sslmode=disable"
            connection = await connect(url, PostgresOptions())
            assert await connection.fetchval("SELECT 1") == 1
            await connection.close()


class TestPool:
    """More requests than connections."""

    async def test_a_client_that_goes_away_while_it_waits_leaves_no_hole(self, database: str) -> None:
        """Twenty of forty reads are cancelled in all stages; the pool has its two connections afterwards."""
        store = open_store(database, connections=2)
        reads = [asyncio.create_task(store.pets.page(PetQuery())) for _ in range(40)]
        for step in range(20):
            reads[step * 2].cancel()
            await asyncio.sleep(0)
        results = await asyncio.gather(*reads, return_exceptions=True)
        assert sum(isinstance(result, asyncio.CancelledError) for result in results) <= 20
        assert not [r for r in results if isinstance(r, Exception)]
        await asyncio.gather(*(store.probe() for _ in range(20)))
        await until(lambda: run(database, _CONNECTED)[0][0] <= 2)  # the server ends the others a moment later
        await store.close()

    async def test_nothing_is_accepted_after_the_close_and_what_was_is_carried_out(
        self, database: str
    ) -> None:
        """A store that closes, as at a clean stop, ends what it accepted, refuses more, and disconnects."""
        store = open_store(database)
        accepted = [asyncio.create_task(store.pets.add(REX, ACTOR)) for _ in range(20)]
        await asyncio.sleep(0)
        await store.close()
        assert len({(await task).pet.id for task in accepted}) == 20
        for attempt in (store.pets.add(REX, ACTOR), store.pets.page(PetQuery())):
            with pytest.raises(StoreUnavailable, match="shutting down"):
                await attempt
        assert run(database, _CONNECTED)[0][0] == 0


_CONNECTED = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'petstore'"
)
