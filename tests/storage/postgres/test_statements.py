"""What the store's statements are like in PostgreSQL: bounded by indexes, one round trip, safe in a race."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from petstore.core.clock import SystemClock
from petstore.core.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from petstore.core.idempotency import IdempotencyKey, fingerprint
from petstore.core.orders import OrderQuery, OrderStatus
from petstore.core.pets import AddedPet, NewPet, Pet, PetQuery, PetStatus
from petstore.core.search import SearchKind
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import pets
from petstore.storage.postgres.connection import connect
from petstore.storage.postgres.search import REMOVE
from petstore.storage.store import Store
from petstore.transactions import idempotency, orders, refusals
from petstore.transactions.billing import COUNTED
from petstore.transactions.deliverers import FURTHEST_BEHIND, NEXT_REPETITIONS, PRUNE
from petstore.transactions.deliveries import ATTEMPTS, TEST
from petstore.transactions.pets import after_every_name, by_name, page_of
from petstore.transactions.retention import PARTS, REMOVE_OLD, STEP_MAX
from tests.support import webhooks
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import by_way_of, listening_address, run
from tests.support.proxy import open_proxy

REX = NewPet("Rex", 1)
TOM = NewPet("Tom", 2)
KEY = IdempotencyKey(1, "order-1")


@pytest.fixture
async def store(store: Store) -> Store:
    """A store with an account and a key."""
    await webhooks.account(store, "shop")
    return store


class Rival:
    """Somebody else's open transaction that has taken the key."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def take_key(self, new: NewPet, pet_id: int) -> None:
        """Note it for an animal, and do not commit."""
        clock = ManualClock()
        await self._connection.execute("BEGIN")
        await self._connection.execute(
            "INSERT INTO idempotency_keys VALUES ($1, $2, $3, $4, $5)",
            *(KEY.account_id, KEY.text, fingerprint(new), pet_id, clock.now_ms()),
        )

    async def has_a_waiter(self) -> None:
        """Wait until a statement waits for this transaction's end."""
        while not await self._connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass

    async def end(self, how: str) -> None:
        await self._connection.execute(how)


@pytest.fixture
async def rival(database: str, store: Store) -> AsyncIterator[Rival]:
    connection = await asyncpg.connect(database)
    yield Rival(connection)
    connection.terminate()


class TestIdempotencyRace:
    """Two replicas, one key, the same moment: what one statement sees, and what it doesn't."""

    async def test_another_replica_is_told_at_once(self, database: str, store: Store, rival: Rival) -> None:
        """Another replica refuses the key at once while the first request runs; its retry gets the animal."""
        await rival.take_key(TOM, 77)
        first = asyncio.create_task(store.pets.add(REX, ACTOR, KEY))
        await rival.has_a_waiter()
        other = backend_for(database).open(ManualClock())
        with pytest.raises(IdempotencyKeyInUse):
            await other.pets.add(REX, ACTOR, KEY)
        assert not first.done()
        await rival.end("ROLLBACK")
        added = await first
        assert await other.pets.add(REX, ACTOR, KEY) == AddedPet(added.pet, True)
        await other.close()

    @pytest.mark.parametrize("taken_for", [REX, TOM], ids=["replay", "reuse"])
    async def test_a_key_that_commits_under_the_statement_is_found(
        self, database: str, store: Store, rival: Rival, taken_for: NewPet
    ) -> None:
        """It was not there when the statement began: nothing is added, and the answer is the other one's, or
        a reuse where it is for another animal."""
        await rival.take_key(taken_for, 77)
        adding = asyncio.create_task(store.pets.add(REX, ACTOR, KEY))
        await rival.has_a_waiter()
        await rival.end("COMMIT")
        if taken_for == REX:
            assert await adding == AddedPet(Pet(77, "Rex", 1, PetStatus.AVAILABLE), True)
        else:
            with pytest.raises(IdempotencyKeyReused):
                await adding
        assert run(database, "SELECT count(*) FROM pets") == [(0,)]

    async def test_keys_whose_locks_share_a_number_only_wait_for_each_other(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A collision of 64 bits costs a 409, and nothing is mixed up."""
        monkeypatch.setattr(idempotency, "lock_number", lambda _: 7)

        async def until_done(key: IdempotencyKey) -> AddedPet:
            while True:
                try:
                    return await store.pets.add(REX, ACTOR, key)
                except IdempotencyKeyInUse:
                    continue

        keys = [IdempotencyKey(1, f"order-{number}") for number in range(10)]
        created = await asyncio.gather(*map(until_done, keys))
        assert len({one.pet.id for one in created}) == 10
        assert not any(one.replayed for one in created)


class TestRoundTrips:
    """An addition is one question and one answer, with and without a key."""

    async def test_an_addition_is_one(self, database: str, store: Store) -> None:
        """Counted on the wire, once the statements are prepared."""
        async with open_proxy(listening_address(database)) as proxy:
            options = PostgresOptions(connections=1)
            backend = backend_for(by_way_of(database, proxy.port), postgres=options)
            near = await asyncio.to_thread(backend.open, ManualClock())
            await near.pets.add(REX, ACTOR)
            await near.pets.add(REX, ACTOR, IdempotencyKey(1, "first"))
            await near.pets.page(PetQuery(status=PetStatus.SOLD))
            before = proxy.questions
            await near.pets.add(REX, ACTOR)
            await near.pets.add(REX, ACTOR, IdempotencyKey(1, "second"))
            await near.pets.add(REX, ACTOR, IdempotencyKey(1, "second"))
            await near.pets.page(PetQuery(status=PetStatus.SOLD))
            assert proxy.questions - before == 4
            await near.close()


# Beginning, name and identifier to go on from.
_SEARCHES = (
    ("r", "r", 0), ("rex", "rex", 25_000), ("a", "a", 0), ("zz", "zz4", 7), ("", "", 0), ("q", "q", 0),
)  # fmt: skip


def fill(database: str) -> None:
    """Fifty thousand animals: the old ones are sold, the new ones available, few are pending. Most are of
    category 1; a tenth, the newest, are of category 2; one in a thousand is of category 3."""
    run(
        database,
        "INSERT INTO pets (name, category_id, status) SELECT 'pet',"
        " CASE WHEN g % 1000 = 7 THEN 3 WHEN g > 45000 THEN 2 ELSE 1 END,"
        " CASE WHEN g % 50 = 0 THEN 'pending' WHEN g < 40000 THEN 'sold' ELSE 'available' END"
        " FROM generate_series(1, 50000) g; ANALYZE pets",
    )


async def planning(database: str) -> AsyncIterator[asyncpg.Connection]:
    """Connections that plan without the values of a query, and for each query anew."""
    for mode in ("force_generic_plan", "force_custom_plan"):
        connection = await asyncpg.connect(database, server_settings={"plan_cache_mode": mode})
        yield connection
        connection.terminate()


class TestPlans:
    """Every query of a page walks along an index, whatever the planner knows of the values."""

    async def test_a_page_reads_little_more_than_it_shows(self, database: str, store: Store) -> None:
        """Every filter is tried, first and deep, from both ends: of animals that are not on the page, hardly
        any is read, and no more are sorted than a page of each status. Of the most frequent pages none is."""
        fill(database)
        ids = tuple(range(1, 30_000, 300))
        async for connection in planning(database):
            for query in (*queries(False, ids), *queries(True, ids)):
                statement, arguments = page_of(query)
                await self._check(
                    connection, statement.postgres, arguments, 3 * (query.limit + 1), 6 * query.limit
                )
            for after in (0, 20_000, 49_000):
                await self._check(connection, pets._PAGE, (after, 21), 21)
                for status in PetStatus:
                    await self._check(connection, pets._PAGE_BY_STATUS, (after, 21, status.value), 21)
            many = list(range(0, 50_000, 800))
            await self._check(connection, pets._PAGES, (many, 21), len(many))
            for status in PetStatus:
                await self._check(connection, pets._PAGES_BY_STATUS, (many, 21, status.value), len(many))
            await self._check(connection, pets._ONE, (7,), 1)

    async def test_a_page_of_orders_reads_little_more_than_it_shows(
        self, database: str, store: Store
    ) -> None:
        """Pages are of one account and of all, in one state, in those that wait and in any, from both ends:
        also where the account or the state is rare, or all of its orders are old."""
        run(
            database,
            "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
            " SELECT 'a' || g, 'free', 60, 1000, 0 FROM generate_series(1, 20) g;"
            " INSERT INTO orders (account_id, pet_id, status, created_at_ms)"
            " SELECT CASE WHEN g % 1000 = 7 THEN 2 WHEN g < 100 THEN 3 ELSE 1 END, g,"
            " CASE WHEN g < 200 THEN 'placed' WHEN g % 5000 = 0 THEN 'approved'"
            " WHEN g % 9 = 0 THEN 'cancelled' ELSE 'delivered' END, 0 FROM generate_series(1, 30000) g;"
            " ANALYZE orders",
        )
        async for connection in planning(database):
            for newest_first, account, (status, is_open), after in itertools.product(
                (False, True),
                (None, 1, 2, 3),
                ((None, False), (OrderStatus.APPROVED, False), (None, True)),
                (0, 15_000),
            ):
                query = OrderQuery(account, 20, status, None, after, newest_first, is_open)
                statement, arguments = orders.page_of(query)
                await self._check(connection, statement.postgres, arguments, 2 * (query.limit + 1))

    async def test_a_page_of_an_account_with_most_orders(self, database: str, store: Store) -> None:
        """A page of an account with most orders reads no other orders, in any state, one, or all that
        wait. The plans are a service's and PgBouncer's: the lowest and the highest account have few."""
        run(
            database,
            "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
            " SELECT 'a' || g, 'free', 60, 1000, 0 FROM generate_series(1, 2000) g;"
            " INSERT INTO orders (account_id, pet_id, status, created_at_ms)"
            " SELECT CASE WHEN g % 10 < 3 THEN 2 WHEN g % 10 < 6 THEN 1999 ELSE 1 + g % 2000 END, g,"
            " CASE WHEN g % 100 IN (1, 4) THEN 'placed' WHEN g % 10 IN (2, 5) THEN 'cancelled'"
            " ELSE 'delivered' END, 0 FROM generate_series(1, 100000) g; ANALYZE orders",
        )
        custom = {"plan_cache_mode": "force_custom_plan"}
        for connection in (
            await connect(database, PostgresOptions()),
            await asyncpg.connect(database, server_settings=custom),
        ):
            for newest_first, account, limit, (status, is_open) in itertools.product(
                (False, True),
                (2, 1999),
                (20, 100),
                ((OrderStatus.DELIVERED, False), (OrderStatus.PLACED, False), (OrderStatus.APPROVED, False),
                 (None, True), (None, False)),
            ):  # fmt: skip
                query = OrderQuery(account, limit, status, None, 50_000, newest_first, is_open)
                statement, arguments = orders.page_of(query)
                await self._check(connection, statement.postgres, arguments, 2 * (limit + 1), 6 * limit)
            await connection.close()

    async def test_tries_of_a_webhook(self, database: str, store: Store) -> None:
        """However many others have: its page, one test of it, and what is kept of its successes."""
        for _ in range(2):
            await webhooks.webhook(store, 1, "https://shop.example/hook")
        run(
            database,
            "INSERT INTO webhook_tries (webhook_id, event_id, type, at_ms, duration_ms, fault, answer)"
            " SELECT CASE WHEN g % 2000 = 7 THEN 2 ELSE 1 END, 'evt_' || g, 'pet.created', g, 1,"
            " CASE WHEN g % 2 = 0 THEN 'bad' END, '' FROM generate_series(1, 20000) g; ANALYZE",
        )
        async for connection in planning(database):
            for webhook_id in (1, 2, 3):
                for statement, arguments in (
                    (ATTEMPTS, (webhook_id, 2**62, 21)),
                    (TEST, (webhook_id, "evt_7")),
                    (PRUNE, (webhook_id + 1,)),
                    (PARTS[0][0], (webhook_id, 0, 100)),
                ):
                    await self._check(connection, statement.postgres, arguments, 101)

    async def test_what_a_webhook_is_to_send_again_next(self, database: str, store: Store) -> None:
        """However much that is: every claim reads it."""
        await webhooks.webhook(store, 1, "https://shop.example/hook")
        run(
            database,
            "UPDATE webhooks SET owner = 'a'; INSERT INTO webhook_repetitions SELECT 1, 'abc', g, 1,"
            " g * 7919 % 20011 FROM generate_series(1, 20000) g; ANALYZE",
        )
        async for connection in planning(database):
            sql = NEXT_REPETITIONS.postgres.replace("$1", repr("a"))
            nodes = await explained(connection, f"(ANALYZE, FORMAT JSON) {sql}")
            assert max(node["Actual Rows"] for node in nodes) == 1_000, nodes

    async def test_what_a_step_of_the_removal_reads(self, database: str, store: Store) -> None:
        """It reads what it removes, of a table of any size: a step that reads all of it takes too long one
        day, and nothing is removed any more."""
        await webhooks.webhook(store, 1, "https://shop.example/hook")
        run(
            database,
            "INSERT INTO usage_days SELECT 1 + g % 200, g / 200, 1, 0, 0 FROM generate_series(0, 59999) g;"
            " INSERT INTO webhook_tries (webhook_id, event_id, type, at_ms, duration_ms, fault, answer)"
            " SELECT 1, 'evt_' || g, 'pet.created', g, 1, 'bad', '' FROM generate_series(0, 59999) g;"
            " INSERT INTO refusals (account_id, at_ms, key_id, method, status, code)"
            " SELECT 1, g, 1, 'GET', 429, 'rate_limited' FROM generate_series(0, 59999) g; ANALYZE",
        )
        async for connection in planning(database):
            for kind in ("usage_days", "webhook_tries", "refusals"):
                await self._check(connection, REMOVE_OLD[kind].postgres, (150,), STEP_MAX)

    async def test_what_a_page_of_a_bill_reads(self, database: str, store: Store) -> None:
        """The days of its accounts alone: with those of all, which are stored day by day, a year's bill took
        hours."""
        run(
            database,
            "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
            " SELECT 'a' || g, 'free', 60, 1000, 0 FROM generate_series(1, 2000) g;"
            " INSERT INTO usage_days SELECT 1 + g % 2000, g / 2000, 1, 0, 0 FROM generate_series(1, 99999) g;"
            " ANALYZE",
        )
        async for connection in planning(database):
            for accounts in ((7, 7), (1_000, 1_016)):
                await self._check(connection, COUNTED.postgres, (*accounts, 10, 40), 600)

    async def test_the_webhook_that_is_furthest_behind(self, database: str, store: Store) -> None:
        """Planned for as many rows as there are webhooks, also without statistics of the one data set: every
        process asks every five seconds."""
        await webhooks.webhook(store, 1, "https://shop.example/hook")
        run(database, "ANALYZE webhooks; ANALYZE accounts")
        async for connection in planning(database):
            nodes = await explained(connection, f"(FORMAT JSON) {FURTHEST_BEHIND.postgres}")
            planned = [node["Plan Rows"] for node in nodes if node.get("Relation Name") != "data_set"]
            assert max(planned) <= 2, nodes

    async def test_a_search_by_name(self, database: str, store: Store) -> None:
        """First and deep, among many that are equal and at the end of the alphabet: what is read is what may
        be read, and nothing is sorted. With the statistics of other names, and with their own."""
        fill(database)
        for change in (
            "UPDATE pets SET name = CASE WHEN id % 5 = 0 THEN 'Rex' WHEN id % 5 = 1 THEN 'zz' || id"
            " ELSE md5(id::text) END",
            "ANALYZE pets",
        ):
            run(database, change)
            async for connection in planning(database):
                for (prefix, name, after), most in itertools.product(_SEARCHES, (51, 1_000)):
                    arguments = name, after, after_every_name(prefix)
                    nodes = await self._check(connection, by_name(most).postgres, arguments, most)
                    assert {node["Node Type"] for node in nodes} == {"Limit", "Index Scan", "Result"}, nodes

    async def test_what_the_saving_of_refused_requests_reads(self, database: str, store: Store) -> None:
        """It reads no more accounts than those that it names: each process saves about once a second."""
        run(
            database,
            "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
            " SELECT 'a' || g, 'free', 60, 1000, 0 FROM generate_series(1, 10000) g; ANALYZE",
        )
        rows = '[[7, 1, 1, "GET", null, 429, "x", null, null]]'
        async for connection in planning(database):
            await self._check(connection, refusals.ADD.postgres, (rows,), 100, 200)

    async def test_what_goes_from_an_index_of_searches_that_grows(self, database: str, store: Store) -> None:
        """Removals from a growing index compare no text with all the others, though planned while it was
        known to be empty, after a restore and an ANALYZE; else each step took longer than the one before."""
        run(database, "ANALYZE search_pets")
        connection = await connect(database, PostgresOptions())
        await connection.execute(f"PREPARE remove AS {REMOVE[SearchKind.PETS].postgres}")
        sql = "(ANALYZE, FORMAT JSON) EXECUTE remove (ARRAY[7, 8, 9])"
        await explained(connection, sql)
        run(database, "INSERT INTO search_pets SELECT g, '{1}' FROM generate_series(1, 5000) g")
        nodes = await explained(connection, sql)
        for kind in ("Rows Removed by Filter", "Rows Removed by Join Filter"):
            assert sum(node.get(kind, 0) for node in nodes) == 0, nodes
        assert run(database, "SELECT count(*) FROM search_pets") == [(4_997,)]
        await connection.close()

    async def test_what_a_session_is_told(self, database: str) -> None:
        """A session plans once, since planning a page would cost more than reading it, and has time limits,
        so that a process that stands still holds no lock for longer than a statement may take."""
        connection = await connect(database, PostgresOptions(timeout_ms=2_345))
        names = ("plan_cache_mode", "statement_timeout", "idle_in_transaction_session_timeout")
        told = [await connection.fetchval(f"SHOW {name}") for name in names]
        assert told == ["force_generic_plan", "2345ms", "2345ms"]
        await connection.close()

    async def test_no_statement_is_compiled(self, database: str) -> None:
        """However much the server thinks that it costs: with a long journal each read of it took 0.1 s."""
        connection = await connect(database, PostgresOptions())
        await connection.execute("SET jit_above_cost = 0")
        plan = await connection.fetch("EXPLAIN (ANALYZE) SELECT count(*) FROM journal")
        assert not [row for (row,) in plan if row.startswith("JIT")]
        await connection.close()

    async def _check(
        self,
        connection: asyncpg.Connection,
        sql: str,
        arguments: tuple[object, ...],
        most: int,
        blocks: int = 2_000,
    ) -> list[dict]:
        """The plan's nodes. `most`: rows that a step may handle; `blocks`: how many of them and of indexes
        are read, since no plan says what a condition in an index leaves out. EXECUTE, because EXPLAIN of the
        statement itself plans for its arguments in every mode."""
        await connection.execute(f"PREPARE page AS {sql}")
        written = ", ".join(map(_literal, arguments))
        nodes = await explained(connection, f"(ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page ({written})")
        await connection.execute("DEALLOCATE page")
        assert "Seq Scan" not in {node["Node Type"] for node in nodes}, nodes
        assert max(node["Actual Rows"] for node in nodes) <= max(most, 100), nodes
        assert sum(node.get("Rows Removed by Filter", 0) for node in nodes) <= 100, nodes
        assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] <= blocks, nodes
        return nodes


def queries(newest_first: bool, ids: tuple[int, ...]) -> Iterator[PetQuery]:
    """Every combination of filters, from the beginning and from the middle."""
    for after in (0, 25_000, 44_990):
        for status in (None, *PetStatus):
            for category in (None, 1, 2, 3, 999):
                yield PetQuery(20, status, None, after, category, newest_first)
                yield PetQuery(100, status, ids, after, category, newest_first)


def _literal(value: object) -> str:
    if isinstance(value, list):
        return f"ARRAY{value}"
    return str(value) if isinstance(value, int) else f"'{value}'"


async def explained(connection: asyncpg.Connection, what: str) -> list[dict]:
    """The nodes of a plan, the whole of it first."""
    return list(_nodes(json.loads(await connection.fetchval(f"EXPLAIN {what}"))[0]["Plan"]))


def _nodes(plan: dict) -> Iterator[dict]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


class WrongClock(SystemClock):
    """A machine whose clock is set wrong by so many hours."""

    def __init__(self, hours: int) -> None:
        self._ms = hours * 3_600_000

    def now_ms(self) -> int:
        return super().now_ms() + self._ms


class TestClocks:
    """What replicas have to see alike goes by the server's clock."""

    @pytest.mark.parametrize(("first", "second"), [(0, 25), (-25, 0), (25, -25)])
    async def test_a_wrong_clock_adds_no_second_animal(self, database: str, first: int, second: int) -> None:
        """One replica's clock is a day off: the retry through the other is replayed, after its purge too."""
        stores = [backend_for(database).open(WrongClock(hours)) for hours in (first, second)]
        added = await stores[0].pets.add(REX, ACTOR, KEY)
        for hours, store in zip((first, second), stores, strict=True):
            await store.purge(WrongClock(hours).now_ms())
            assert await store.pets.add(REX, ACTOR, KEY) == AddedPet(added.pet, True)
        await asyncio.gather(*(store.close() for store in stores))

    async def test_what_has_outlived_its_day_by_the_servers_clock_goes(self, database: str) -> None:
        """The purge deletes it, and a key that was not purged yet is as good as new."""
        store = backend_for(database).open(WrongClock(0))
        aged = "UPDATE creations SET created_at_ms = created_at_ms - 86400001"
        first = await store.pets.add(REX, ACTOR, KEY)
        run(database, aged)
        second = await store.pets.add(REX, ACTOR, KEY)
        assert (second.replayed, second.pet == first.pet) == (False, False)
        run(database, aged)
        await store.purge(0)
        assert run(database, "SELECT count(*) FROM creations") == [(0,)]
        await store.close()
