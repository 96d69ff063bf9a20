"""PostgreSQL that says no: collisions are tried again, everything else is told, and nothing is half done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from petstore.core.errors import OrderNotFound, StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, PetChange, PetQuery, PetStatus
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import database as statements
from petstore.storage.postgres import search
from petstore.storage.postgres.connection import connect
from petstore.storage.postgres.faults import Repeatable
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, written
from tests.support.postgres import configure, run, shared_url
from tests.support.windows import used_of

REX = NewPet("Rex", 1)
Open = Callable[..., Store]


@pytest.fixture
async def open_store(database: str) -> AsyncIterator[Open]:
    """Opens stores on the database; the first one finds an account, a key and an animal."""
    opened: list[Store] = []

    def open_one(**options: Any) -> Store:
        opened.append(backend_for(database, postgres=PostgresOptions(**options)).open(ManualClock()))
        return opened[-1]

    first = open_one()
    await first.accounts.add("shop", FREE, ACTOR)
    await first.keys.issue("shop", "test", ACTOR)
    await first.pets.add(REX, ACTOR)
    yield open_one
    for store in opened:
        await store.close()


class TestCollisions:
    """The server lets one of several transactions fail: it is repeated, within a second."""

    async def test_a_deadlock_is_survived(self, database: str, open_store: Open) -> None:
        """Somebody locks in the other order: we are the one that the server stops, and we try again."""
        configure(database, "deadlock_timeout = '1s'")  # PostgreSQL looks once, after it
        store = open_store()
        await store.counters.save(LimiterState({}, {1: BanState(strikes=1)}), UsageChanges())
        other = await asyncpg.connect(database)
        await other.execute("SET deadlock_timeout = '20s'; BEGIN; DELETE FROM key_standings WHERE key_id = 1")
        pardoning = asyncio.create_task(store.keys.pardon(1, ACTOR))
        while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass
        await other.execute("UPDATE api_keys SET label = 'till' WHERE id = 1; COMMIT")
        assert (await pardoning).label == "till"
        other.terminate()

    async def test_an_order_is_gone_when_its_turn_comes(self, database: str, open_store: Open) -> None:
        """Staging was filled anew meanwhile."""
        store = open_store()
        await store.orders.place(1, NewOrder(1), ACTOR)
        other = await asyncpg.connect(database)
        await other.execute("BEGIN; DELETE FROM orders; DELETE FROM pets")
        changing = asyncio.create_task(store.orders.change(1, ACTOR, status=OrderStatus.APPROVED))
        commenting = asyncio.create_task(store.orders.comment(1, "call first", ACTOR))
        while await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") < 2:
            pass
        await other.execute("COMMIT")
        for waiting in (changing, commenting):
            with pytest.raises(OrderNotFound):
                await waiting
        other.terminate()

    @pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
    async def test_serialisation_failures_are_survived(
        self, database: str, open_store: Open, isolation: str
    ) -> None:
        """A server that isolates strictly, and ten sales of one animal at once: one change, no error."""
        configure(database, f"default_transaction_isolation = '{isolation}'")
        store = open_store()
        await asyncio.gather(
            *(store.pets.change(1, PetChange(status=PetStatus.SOLD), f"s{n}") for n in range(10))
        )
        assert await written(store, "pet:1") == ["pet.added pet:1", "pet.changed pet:1"]

    async def test_batches_of_several_processes_never_lock_each_other_out(
        self, database: str, open_store: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each has the same rows in another order, all at once, and nothing may be tried a second time."""
        monkeypatch.setattr(statements, "_RETRY_DELAYS_SECONDS", ())
        configure(database, "deadlock_timeout = '1ms'")
        stores = [open_store(timeout_ms=50_000) for _ in range(4)]  # all wait for each other

        def batch(turn: int) -> tuple[LimiterState, UsageChanges]:
            ids = list(range(1, 60))[:: 1 if turn % 2 else -1]
            windows = {n: used_of((turn, turn), (7, turn)) for n in ids}
            usage = UsageChanges({(n, 7): DailyUsage(7, 1) for n in ids}, dict.fromkeys(ids, turn))
            return LimiterState(windows, {n: BanState(strikes=turn) for n in ids}), usage

        await asyncio.gather(
            *(store.counters.merge(*batch(turn)) for turn in range(20) for store in stores)  # type: ignore[attr-defined]
        )
        assert (await stores[0].usage.report(0, 59)).days[0].requests == 80

    async def test_what_collides_for_ever_is_told_within_a_second(
        self, database: str, open_store: Open
    ) -> None:
        """Eight attempts, then an error that says that nothing was stored."""
        run(
            database,
            "CREATE SEQUENCE attempts; CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM nextval('attempts'); RAISE SQLSTATE '40001'; END $$;"
            " CREATE TRIGGER collide BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION collide()",
        )
        store = open_store()
        for idempotency_key in (None, IdempotencyKey(1, "order-1")):
            with pytest.raises(StoreUnavailable, match="busy with other writes; nothing was stored"):
                await store.pets.add(REX, ACTOR, idempotency_key)
        assert run(database, "SELECT last_value FROM attempts") == [(16,)]
        assert sum(statements._RETRY_DELAYS_SECONDS) < 1

    async def test_what_is_refused_slowly_is_not_repeated_for_long(
        self, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A slow refusal, as by a pooler, is repeated once: eight times would take half a minute."""
        clock = ManualClock()
        store = backend_for(database).open(clock)
        attempts = 0

        async def refuse_slowly() -> None:
            nonlocal attempts
            attempts += 1
            clock.advance(1.5)
            raise Repeatable("The store failed: the connection to it broke.")

        monkeypatch.setattr(store._database.pool, "acquire", refuse_slowly)  # type: ignore[attr-defined]
        with pytest.raises(StoreUnavailable, match="broke"):
            await store.pets.get_or_none(1)
        assert attempts == 2
        await store.close()


class TestTold:
    """What is refused for a reason that lasts."""

    @pytest.mark.parametrize("idempotency_key", [None, IdempotencyKey(1, "order-1")])
    async def test_identifiers_come_to_an_end(
        self, database: str, open_store: Open, idempotency_key: IdempotencyKey | None
    ) -> None:
        """The last one is exact in JavaScript; after it nothing is stored, and reading goes on."""
        run(database, "ALTER SEQUENCE pets_id_seq RESTART WITH 9007199254740991")
        store = open_store()
        assert (await store.pets.add(REX, ACTOR)).pet.id == 2**53 - 1
        with pytest.raises(StoreUnavailable, match="range of identifiers is full; nothing was stored"):
            await store.pets.add(REX, ACTOR, idempotency_key)
        assert len((await store.pets.page(PetQuery())).pets) == 2
        assert run(database, "SELECT count(*) FROM creations") == [(0,)]

    async def test_a_copy_that_cannot_be_written_to(self, database: str, open_store: Open) -> None:
        """A database that can't be written to, as after a failover that went elsewhere or at a provider's
        full disk, still serves reads, and takes writes as soon as it may.
        """
        configure(database, "default_transaction_read_only = on")
        store = open_store()
        with pytest.raises(StoreUnavailable, match="a copy, or default_transaction_read_only is on; nothing"):
            await store.pets.add(REX, ACTOR)
        assert len((await store.pets.page(PetQuery())).pets) == 1
        name = urlsplit(database).path[1:]
        run(shared_url(), f"ALTER DATABASE {name} RESET default_transaction_read_only")
        assert (await store.pets.add(REX, ACTOR)).pet.id == 2

    async def test_what_has_no_words_of_ours_has_its_code(self, database: str, open_store: Open) -> None:
        """An operator looks it up. The server's own words may quote data."""
        alter = f"ALTER DATABASE {urlsplit(database).path[1:]} ALLOW_CONNECTIONS"
        run(shared_url(), f"{alter} false")
        try:
            with pytest.raises(StoreUnavailable, match=r"the operation \(SQLSTATE 55000\)"):
                await open_store().pets.add(REX, ACTOR)
        finally:
            run(shared_url(), f"{alter} true")

    async def test_a_statement_that_takes_too_long(self, database: str, open_store: Open) -> None:
        """The server ends it, so that the outcome is known and the connection is used on."""
        store = open_store(timeout_ms=1_000, connections=1)
        pid = await _backend(store)
        locker = await asyncpg.connect(database)
        await locker.execute("BEGIN; LOCK TABLE pets")
        with pytest.raises(StoreUnavailable, match="it took too long; nothing was stored"):
            await store.pets.add(REX, ACTOR)
        with pytest.raises(StoreUnavailable, match="it took too long"):
            await store.pets.page(PetQuery())
        with pytest.raises(StoreUnavailable, match="it took too long; nothing was stored"):
            await store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff")
        await locker.execute("ROLLBACK")
        assert (await store.pets.add(REX, ACTOR)).pet.id > 1
        locker.terminate()
        assert await _backend(store) == pid

    async def test_behind_pgbouncer_the_server_is_told_that_nobody_waits_any_more(
        self, database: str, open_store: Open
    ) -> None:
        """There the server has no time limit of its own: what we give up is cancelled, and holds no lock."""
        options = PostgresOptions(timeout_ms=1_000, prepared=False)
        store = backend_for(database, postgres=options).open(ManualClock())
        locker = await asyncpg.connect(database)
        await locker.execute("BEGIN; LOCK TABLE pets")
        with pytest.raises(StoreUnavailable, match="it did not answer in time; whether this write was kept"):
            await store.pets.add(REX, ACTOR)
        await store.close()
        while await locker.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass
        locker.terminate()
        assert run(database, "SELECT count(*) FROM pets") == [(1,)]

    async def test_work_without_a_bound_has_none_by_its_role_or_database(self, database: str) -> None:
        """That is `db copy`, an import and `db check`, which take minutes: providers set such bounds."""
        configure(database, "statement_timeout = 1")
        configure(database, "idle_in_transaction_session_timeout = 1")
        connection = await connect(database, PostgresOptions(), bounded=False)
        async with connection.transaction():
            await connection.execute("SELECT pg_sleep(0.02)")
            for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
                assert await connection.fetchval(f"SHOW {name}") == "0"
        await connection.close()

    async def test_connections_that_an_administrator_ends(self, database: str, open_store: Open) -> None:
        """Again and again, under load: what was acknowledged is there, and every request ends."""
        store = open_store()
        ending = True

        async def end_them() -> None:
            connection = await asyncpg.connect(database)
            while ending:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            connection.terminate()

        administrator = asyncio.create_task(end_them())
        added = await asyncio.gather(
            *(store.pets.add(REX, ACTOR) for _ in range(100)), return_exceptions=True
        )
        ending = False
        await administrator
        acknowledged = {one.pet.id for one in added if not isinstance(one, BaseException)}
        assert all(isinstance(one, StoreUnavailable) for one in added if isinstance(one, BaseException))
        kept = {row[0] for row in run(database, "SELECT id FROM pets")}
        assert acknowledged <= kept
        await store.probe()

    async def test_a_schema_that_somebody_damaged(self, database: str, open_store: Open) -> None:
        """The message says what to do; it has no word of the server's own."""
        store = open_store()
        run(database, "DROP TABLE creations CASCADE")
        with pytest.raises(StoreUnavailable, match="schema is incomplete; `petstore db migrate`"):
            await store.pets.add(REX, ACTOR, IdempotencyKey(1, "x"))


async def _backend(store: Store) -> int:
    """The server's process that a store with one connection speaks to."""
    rows = await store._database.fetch("SELECT pg_backend_pid()")  # type: ignore[attr-defined]
    return int(rows[0][0])


async def test_a_large_index_is_emptied_in_parts(
    database: str, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has millions of names: to remove all at once takes longer than a statement may."""
    monkeypatch.setattr(search, "_REMOVED", 100)
    run(
        database,
        "INSERT INTO search_pets SELECT number, ARRAY[1] FROM generate_series(1, 400) number;"
        " CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_sleep(0.002); RETURN OLD; END';"
        " CREATE TRIGGER slow BEFORE DELETE ON search_pets FOR EACH ROW EXECUTE FUNCTION wait()",
    )
    store = open_store(timeout_ms=600)
    assert await store.search.step() is not None
    assert run(database, "SELECT count(*) FROM search_pets") == [(0,)]
