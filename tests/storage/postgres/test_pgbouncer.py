"""PgBouncer: the contract uses each part of a store through its transaction mode, in cases that are called
[pgbouncer]; here is what only it shows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from petstore import storage
from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import UsageChanges
from petstore.core.pets import NewPet, PetQuery
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.pgbouncer import SESSIONS, pooled
from tests.support.postgres import by_way_of, fresh_database, listening_address, run
from tests.support.proxy import open_proxy
from tests.support.schemas import migrate
from tests.support.server import running_server

_LOCKS = (
    "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
    " WHERE locktype = 'advisory' AND datname = current_database()"
)
# Of PostgreSQL what a session keeps after its transaction.
_OF_A_SESSION = re.compile(
    r'"SET (?!LOCAL)|set_config\(|pg_(?:try_)?advisory_lock\w*\(|LISTEN |add_listener'
    r"|\bTEMP(?:ORARY)? |PREPARE |WITH HOLD"
)


def test_little_is_kept_in_a_session() -> None:
    """Somebody else's transaction would have it, and ours not. These have sessions of their own or, for the
    tables of an import, one transaction where statements are not prepared."""
    sources = Path(storage.__file__).parents[1]
    found = {
        (path.relative_to(sources).as_posix(), said)
        for path in sources.rglob("*.py")
        for said in _OF_A_SESSION.findall(path.read_text())
    }
    assert found == {
        ("storage/postgres/connection.py", '"SET '),
        ("storage/postgres/upkeep.py", '"SET '),
        ("storage/postgres/upkeep.py", "set_config("),
        ("storage/postgres/upkeep.py", "pg_advisory_lock("),
        ("transactions/stock.py", "TEMP "),
    }


async def test_many_clients_take_turns_on_few_connections() -> None:
    """Two stores of ten connections each, reading and writing at once over three of the server's: every
    statement finds the session that it needs, and no animal gets lost or mixed up."""
    with fresh_database() as url:
        options = PostgresOptions(prepared=False)
        stores = [backend_for(pooled(url), postgres=options).open(ManualClock()) for _ in range(2)]
        await stores[0].accounts.add("shop", FREE, ACTOR)

        async def client(number: int) -> None:
            store = stores[number % 2]
            for count in range(5):
                name = f"{number}-{count}"
                created = await store.pets.add(NewPet(name, number), ACTOR, IdempotencyKey(1, name))
                found = await store.pets.get_or_none(created.pet.id)
                assert found == created.pet
                page = await store.pets.page(PetQuery(limit=100, after_id=created.pet.id - 1))
                assert page.pets[0] == created.pet

        await asyncio.gather(*(client(number) for number in range(20)))
        connected = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert run(url, connected)[0][0] <= 3
        assert run(url, "SELECT count(*) FROM pets") == [(100,)]
        for store in stores:
            await store.close()


async def test_the_types_of_arrays_are_looked_up_in_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver turns compilation off before, and on again: outside a transaction in others' sessions."""
    in_transactions, look_up = [], asyncpg.Connection._introspect_types

    async def noted(connection: asyncpg.Connection, *arguments: object) -> object:
        in_transactions.append(connection.is_in_transaction())
        return await look_up(connection, *arguments)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", noted)
    with fresh_database(migrated=True) as url:
        through, options = pooled(url), PostgresOptions(prepared=False)
        store = await asyncio.to_thread(backend_for(through, postgres=options).open, ManualClock())
        await store.counters.save(LimiterState(), UsageChanges({}, {1: 5}))
        await asyncio.gather(*(store.pets.page(PetQuery(after_id=number)) for number in range(9)))
        await asyncio.gather(*(store.keys.find_caller(b"%d" % number) for number in range(3)))
        await store.close()
    assert set(in_transactions) == {True}


@pytest.mark.e2e
def test_the_service_runs_through_it(tmp_path: Path) -> None:
    """It uses no prepared statements, as PgBouncer's transaction mode needs."""
    with (
        fresh_database() as url,
        running_server(tmp_path, database_url=pooled(url), database_prepared="off") as server,
    ):
        assert server.post({"name": "Rex", "categoryId": 1}).status == 201
        assert [pet["name"] for pet in server.request("GET", "/v1/pets").json()] == ["Rex"]


@pytest.mark.parametrize(
    ("mode", "ignoring", "reason"),
    [
        ("session", False, "PgBouncer, which refuses the timeouts that the service sets"),
        ("transaction", False, "PgBouncer, which refuses the timeouts that the service sets"),
        ("transaction", True, "PgBouncer in transaction mode, where prepared statements get lost"),
    ],
)
@pytest.mark.parametrize("what", ["a start", "a migration"])
def test_what_cannot_work_names_the_setting_to_change(
    what: str, mode: str, ignoring: bool, reason: str
) -> None:
    """A mistake of the configuration, each time, with PgBouncer and the setting. No lock is left in a session
    that others get."""
    with fresh_database() as url:
        through = pooled(url, mode, ignoring=ignoring)
        works: dict[str, Callable[[], object]] = {
            "a start": lambda: backend_for(through).open(ManualClock()),
            "a migration": lambda: migrate(through),
        }
        for _ in range(2):
            with pytest.raises(ConfigurationError) as refused:
                works[what]()
            assert str(refused.value) == (
                f"PETSTORE_DATABASE_URL leads to {reason}. Set PETSTORE_DATABASE_PREPARED=off."
            )
        assert run(url, _LOCKS) == [(0,)]


@pytest.mark.parametrize("in_turns", [False, True])
async def test_it_is_recognised_whichever_session_it_gives(in_turns: bool) -> None:
    """It has three, and gives a connection the one that was used last, or each in turn."""
    with fresh_database() as url:
        through = pooled(url, ignoring=True, in_turns=in_turns)
        clients = [await asyncpg.connect(through, statement_cache_size=0) for _ in range(3)]
        await asyncio.gather(*(client.execute("SELECT pg_sleep(0.2)") for client in clients))
        for client in clients:
            await client.close()
        for _ in range(4):
            with pytest.raises(ConfigurationError, match="PgBouncer in transaction mode"):
                await asyncio.to_thread(backend_for(through).open, ManualClock())


async def test_the_last_session_is_enough_to_see_that_it_is_kept() -> None:
    """Others have all but one of those that a pool in session mode may open: a second connection waits in
    vain, and the start does not."""
    with fresh_database() as url:
        through = pooled(url, "session", ignoring=True)
        others = [await asyncpg.connect(through) for _ in range(SESSIONS - 1)]
        await asyncio.gather(*(other.execute("SELECT 1") for other in others))
        async with asyncio.timeout(20):
            backend = backend_for(through, postgres=PostgresOptions(timeout_ms=500))
            store = await asyncio.to_thread(backend.open, ManualClock())
        assert await store.pets.get_or_none(1) is None
        await store.close()
        for other in others:
            await other.close()


async def test_a_pooler_that_comes_in_between_while_the_service_runs() -> None:
    """An outage, with the setting to change for operators, and no error of the program."""
    with fresh_database() as url:
        through = listening_address(pooled(url))
        async with open_proxy(listening_address(url)) as proxy:
            store = await asyncio.to_thread(backend_for(by_way_of(url, proxy.port)).open, ManualClock())
            assert await store.pets.get_or_none(1) is None
            proxy.lead_to(through)
            proxy.cut()
            with pytest.raises(StoreUnavailable, match="which refuses the timeouts") as failure:
                await store.pets.get_or_none(1)
            assert "PgBouncer" not in failure.value.public_message
            await store.close()


async def test_statements_that_a_pooler_has_lost() -> None:
    """A pooler that takes the timeouts has lost the statements of its sessions."""
    with fresh_database() as url:
        store = backend_for(url).open(ManualClock())
        await store.pets.get_or_none(1)
        await store._database.fetch("DEALLOCATE ALL")  # type: ignore[attr-defined]
        with pytest.raises(StoreUnavailable, match="transaction mode; set PETSTORE_DATABASE_PREPARED=off"):
            await store.pets.get_or_none(1)
        await store.close()
