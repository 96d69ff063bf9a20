"""PostgreSQL with few connections: the service at full load leaves one for commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest
from structlog.testing import capture_logs

from petstore import config
from petstore.config import Settings
from petstore.core.clock import SystemClock
from petstore.core.limits.plans import FREE
from petstore.server.starting import fitted
from petstore.wiring.administration import backend_of, store_for_command
from tests.support.journal import ACTOR
from tests.support.postgres import PostgresServer

# Of these 5 are kept, for a command, the hold of a single service, and the background process with an import.
MAX_CONNECTIONS = 14
ROOM = MAX_CONNECTIONS - 5


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    settings = (f"max_connections={MAX_CONNECTIONS}", "superuser_reserved_connections=0")
    with PostgresServer(*settings).start() as opened:
        yield opened


def settings_for(server: PostgresServer, **settings: int) -> Settings:
    environment = {f"PETSTORE_{name.upper()}": str(value) for name, value in settings.items()}
    shared = {"PETSTORE_VALKEY_URL": "valkey://127.0.0.1:1"} if len(settings) > 1 else {}
    return config.load(environment | shared | {"PETSTORE_DATABASE_URL": server.url()})


async def test_a_key_is_revoked_at_full_load(server: PostgresServer) -> None:
    """A pool of 60, all of it busy with a table that somebody has locked: the command gets its connection."""
    settings = settings_for(server, database_pool=60)
    service = fitted(settings, backend_of(settings))
    store = backend_of(service).open(SystemClock())
    await store.accounts.add("shop", FREE, ACTOR)
    key_id = (await store.keys.issue("shop", "test", ACTOR)).record.id
    locking = await asyncpg.connect(server.url())
    await locking.execute("BEGIN; LOCK TABLE pets")
    busy = [asyncio.create_task(store._database.fetch("SELECT 1 FROM pets")) for _ in range(60)]  # type: ignore[attr-defined]
    while await locking.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") < ROOM:
        pass
    async with store_for_command(settings, backend_of(settings), SystemClock(), lambda _: None) as beside:
        backend_of(settings).schema()
        await beside.keys.revoke(key_id, ACTOR)
    await locking.execute("ROLLBACK")
    await asyncio.gather(*busy)
    await locking.close()
    await store.close()


@pytest.mark.parametrize(
    ("given", "pool", "said"),
    [
        ({"database_pool": ROOM}, ROOM, []),
        ({"database_pool": ROOM + 1}, ROOM, [f"opens {ROOM}, not {ROOM + 1}"]),
        ({"database_pool": 2, "workers": 4}, 2, []),
        ({"database_pool": 3, "workers": 4}, 2, ["each of 4 workers opens 2, not 3"]),
        ({"database_pool": 2, "workers": 2, "replicas": 3}, 2, ["may open 16 connections"]),
        ({"database_pool": 2, "replicas": 3}, 2, ["may open 10 connections"]),
        ({"database_pool": 2, "workers": 20}, 1, ["opens 1, not 2", "may open 20 connections"]),
    ],
)
def test_pools_are_compared_with_the_server(
    server: PostgresServer, given: dict[str, int], pool: int, said: list[str]
) -> None:
    """One service makes them smaller; replicas, which may be fewer, only warn."""
    settings = settings_for(server, **given)
    with capture_logs() as lines:
        assert fitted(settings, backend_of(settings)).database_pool == pool
    assert [line["event"] for line in lines] == ["start check"] * len(said)
    for line, text in zip(lines, said, strict=True):
        assert text in line["message"]


def test_a_reload_that_meets_no_server_keeps_the_size(server: PostgresServer) -> None:
    """Pools of the configured size would take every connection once the server is back."""
    settings = settings_for(server, database_pool=60, workers=4)
    away = config.load({"PETSTORE_DATABASE_URL": "postgresql://petstore@127.0.0.1:1/petstore"})
    service = fitted(settings, backend_of(settings))
    assert fitted(settings, backend_of(away), service.database_pool).database_pool == ROOM // 4
