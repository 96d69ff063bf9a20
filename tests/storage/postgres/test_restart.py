"""PostgreSQL crashes and comes back under load: what was acknowledged is there, the store heals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore.core.errors import StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet
from petstore.storage.store import Store
from tests.support.crashes import Crashes
from tests.support.journal import ACTOR
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.restarts import Load, started_again
from tests.support.service import open_shop


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server for this module alone, since it is crashed."""
    with PostgresServer().start() as started:
        yield started


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    with fresh_database(server.url(), migrated=True) as url:
        yield url


@pytest.fixture
async def store(store: Store) -> Store:
    await store.accounts.add("shop", FREE, ACTOR)
    return store


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT], ids=["immediate", "fast"])
async def test_a_restart_under_load_loses_nothing_that_was_acknowledged(
    server: PostgresServer, database: str, store: Store, how: signal.Signals
) -> None:
    """Each animal that a client was told of is there, once, under the id that it was told; the first success
    comes within five seconds of the server's return. The long campaign: `make torture ARGS=restarts`"""
    load = Load(store)
    async with load.going_on():
        assert await load.restart(server, how) < 5
    assert load.faults(database) == []


async def test_identifiers_go_on_after_a_crash_and_versions_are_others(
    server: PostgresServer, store: Store
) -> None:
    """I3: the newest animal is removed, the server crashes: no identifier is used again. What was kept before
    it is read again: the new server may count on with the same numbers."""
    created = [(await store.pets.add(NewPet("x", 1), ACTOR)).pet.id for _ in range(5)]
    await store._database.write_rows("DELETE FROM pets")  # type: ignore[attr-defined]
    before = await store.versions.current()
    await asyncio.to_thread(server.stop, signal.SIGQUIT)
    with pytest.raises(StoreUnavailable):
        await store.versions.current()
    await started_again(server)
    assert await store.versions.current() != before
    assert (await store.pets.add(NewPet("x", 1), ACTOR)).pet.id > max(created)


async def test_nothing_is_kept_over_a_killed_process(
    server: PostgresServer, database: str, tmp_path: Path
) -> None:
    """A process of the server is killed after a rollback: the server recovers without a new start and gives
    out the same transaction ids again. An animal that was committed then is listed, and a key that was
    revoked then is refused, by the very next request."""
    async with open_shop(tmp_path, database_url=database) as shop:
        crashes = Crashes(server, database, shop)
        faults = [fault for _ in range(4) for fault in await crashes.round()]
    assert faults == []
