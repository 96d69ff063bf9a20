"""What a store tells the publisher: before a change may commit, and after its outcome is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from petstore.config.table import TABLE
from petstore.core.errors import Conflict, IdempotencyKeyReused, NotFound, StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.core.staging import Content
from petstore.core.versions import WRITER_SECONDS
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import database as statements
from petstore.storage.postgres import transaction
from petstore.storage.postgres.connection import _GRACE_SECONDS
from petstore.storage.store import Store
from petstore.transactions.script import CATALOGUE, Script, statement
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import by_way_of, run
from tests.support.proxy import Proxy
from tests.support.stock import stock_row
from tests.support.waiting import until

REX = NewPet("Rex", 1)
KEY = IdempotencyKey(1, "order-1")


class Publisher:
    """Notes what it is told, with the number of animals that everybody can see at that moment."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.told: list[tuple[str, str, int]] = []

    def visible(self) -> int:
        return int(run(self.url, "SELECT count(*) FROM pets")[0][0])

    @asynccontextmanager
    async def changing(self, *, catalogue: bool = False, keyring: bool = False) -> AsyncIterator[None]:
        what = " ".join(name for name, on in (("catalogue", catalogue), ("keyring", keyring)) if on)
        self.told.append(("begin", what, self.visible()))
        try:
            yield
        finally:
            self.told.append(("settle", what, self.visible()))

    def take(self) -> list[tuple[str, str, int]]:
        """What was told since the last time."""
        told, self.told = self.told, []
        return told


class Watch:
    """Hears of commits."""

    def __init__(self) -> None:
        self.commits: list[int] = []

    def committed(self, jobs: int, seconds: float) -> None:
        assert seconds >= 0
        self.commits.append(jobs)


@pytest.fixture
def publisher(database: str) -> Publisher:
    return Publisher(database)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
async def store(database: str, publisher: Publisher, watch: Watch, proxy: Proxy) -> AsyncIterator[Store]:
    """Behind the proxy, with an account and a key."""

    def open_it() -> Store:
        url = by_way_of(database, proxy.port)
        return backend_for(url).open(ManualClock(), watch.committed, publisher)

    opened = await asyncio.to_thread(open_it)
    await opened.accounts.add("shop", FREE, ACTOR)
    await opened.keys.issue("shop", "test", ACTOR)
    publisher.take()
    yield opened
    await opened.close()


async def test_an_addition_is_announced_before_and_settled_after(store: Store, publisher: Publisher) -> None:
    """Nobody sees the animal at the beginning, everybody does at the end."""
    await store.pets.add(REX, ACTOR)
    assert publisher.take() == [("begin", "catalogue", 0), ("settle", "catalogue", 1)]


async def test_a_replayed_answer_is_an_acknowledgement_too(store: Store, publisher: Publisher) -> None:
    """The first attempt may have died between its commit and its word to others."""
    await store.pets.add(REX, ACTOR, KEY)
    publisher.take()
    assert (await store.pets.add(REX, ACTOR, KEY)).replayed
    assert publisher.take() == [("begin", "catalogue", 1), ("settle", "catalogue", 1)]


async def test_everything_that_changes_keys_moves_the_keyring_alone(
    store: Store, publisher: Publisher
) -> None:
    """A change of status moves the catalogue."""
    await store.pets.add(REX, ACTOR)
    publisher.take()
    for change, what in (
        (store.accounts.add("other", FREE, ACTOR), "keyring"),
        (store.keys.issue("shop", "test", ACTOR), "keyring"),
        (store.accounts.set_plan("shop", PRO, ACTOR), "keyring"),
        (store.keys.rotate(1, "test", 1_000, ACTOR), "keyring"),
        (store.keys.pardon(1, ACTOR), "keyring"),
        (store.keys.revoke(1, ACTOR), "keyring"),
        (store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff"), "catalogue"),
    ):
        await change
        assert [(step, told) for step, told, _ in publisher.take()] == [("begin", what), ("settle", what)]


async def test_counters_and_the_purge_are_nobodys_business(store: Store, publisher: Publisher) -> None:
    """Nothing that is kept depends on them."""
    await store.counters.save(LimiterState(), UsageChanges({(1, 7): DailyUsage(7, 1)}, {1: 5}))
    await store.purge(10**15)
    assert publisher.take() == []


async def test_a_refused_change_is_settled_as_well(store: Store, publisher: Publisher) -> None:
    """A refused change is settled as well, else everybody would wait for it until its mark has run out."""
    await store.pets.add(REX, ACTOR, KEY)
    publisher.take()
    for attempt, error in (
        (store.pets.add(NewPet("Tom", 1), ACTOR, KEY), IdempotencyKeyReused),
        (store.pets.change(9, PetChange(status=PetStatus.SOLD), "staff"), NotFound),
        (store.accounts.add("shop", FREE, ACTOR), Conflict),
    ):
        with pytest.raises(error):
            await attempt
        assert [step for step, _, _ in publisher.take()] == ["begin", "settle"]


async def test_a_client_that_goes_away_does_not_leave_it_unsettled(
    store: Store, publisher: Publisher
) -> None:
    """The write goes on to its end, and so does what is told of it."""
    adding = asyncio.create_task(store.pets.add(REX, ACTOR))
    await asyncio.sleep(0)
    adding.cancel()
    await until(lambda: len(publisher.told) == 2)
    assert publisher.take() == [("begin", "catalogue", 0), ("settle", "catalogue", 1)]


async def test_an_unknown_outcome_stays_announced_until_it_cannot_come_any_more(
    store: Store, publisher: Publisher, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may commit after we gave up on it: a mark made then outlives that, or the store."""
    monkeypatch.setattr(statements, "_UNKNOWN_SECONDS", 0.1)
    proxy.cut_before_the_answer(b"a needle")
    with pytest.raises(StoreUnavailable, match="unknown"):
        await store.pets.add(NewPet("a needle", 1), ACTOR)
    await until(lambda: len(publisher.told) == 4)
    assert [step for step, _, _ in publisher.take()] == ["begin", "begin", "settle", "settle"]
    monkeypatch.setattr(statements, "_UNKNOWN_SECONDS", 100)
    proxy.cut_before_the_answer(b"a needle")
    with pytest.raises(StoreUnavailable, match="unknown"):
        await store.pets.add(NewPet("a needle", 1), ACTOR)
    await until(lambda: len(publisher.told) == 3)
    assert [step for step, _, _ in publisher.told] == ["begin", "begin", "settle"]
    await store.close()
    assert [step for step, _, _ in publisher.take()] == ["begin", "begin", "settle", "settle"]


async def test_an_import_is_announced_around_its_commit_alone(store: Store, publisher: Publisher) -> None:
    """It may take longer than a writer stays announced: before its commit nobody sees any of it."""
    async with store.stock.importing(ACTOR, None) as load:
        await load.stage([stock_row(1, None, "Rex", 1, None), stock_row(2, None, "Mia", 1, None)])
        await load.plan()
        assert publisher.take() == []
        await load.store()
    assert publisher.take() == [("begin", "catalogue", 0), ("settle", "catalogue", 2)]


async def test_a_refresh_of_staging_is_published_however_long_it_takes(
    database: str, store: Store, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh of staging is published though it takes longer than a statement or a transaction may."""
    monkeypatch.setattr(statements, "_WRITE_SECONDS", 0.9)
    run(
        database,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1);"
        " RETURN NULL; END $$; CREATE TRIGGER slow AFTER DELETE ON pets EXECUTE FUNCTION slow()",
    )
    options = PostgresOptions(timeout_ms=900)
    brief = backend_for(database, postgres=options).open(ManualClock(), publisher=publisher)
    await brief.staging.fill(Content([(1, "Rex", 1, "available")]), ACTOR)
    await brief.close()
    assert publisher.take() == [("begin", "catalogue keyring", 0), ("settle", "catalogue keyring", 1)]


async def test_an_import_of_unknown_outcome_stays_announced(
    store: Store, publisher: Publisher, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit may come late, so a second announcement begins before the first one ends."""
    monkeypatch.setattr(transaction, "_COMMIT_SECONDS", 0.2)
    async with store.stock.importing(ACTOR, None) as load:
        await load.stage([stock_row(1, None, "Rex", 1, None)])
        await load.plan()
        proxy.cut_before_the_answer(b"COMMIT")
        with pytest.raises(StoreUnavailable, match="unknown"):
            await load.store()
    assert [step for step, _, _ in publisher.take()] == ["begin", "begin", "settle", "settle"]


async def test_a_transaction_ends_before_its_announcement(
    store: Store, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many statements it has: what is given up can't commit any more, and is settled."""
    monkeypatch.setattr(statements, "_WRITE_SECONDS", 0.3)

    def long() -> Script[None]:
        yield statement("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold')"), ()
        for _ in range(40):
            yield statement("SELECT pg_sleep(0.05)"), ()

    with pytest.raises(StoreUnavailable, match="nothing was stored"):
        await store._database.write(long, CATALOGUE)
    assert publisher.take() == [("begin", "catalogue", 0), ("settle", "catalogue", 0)]
    assert publisher.visible() == 0


def test_a_statement_ends_before_its_announcement() -> None:
    """A single one because longer ones can't be set; a transaction of several by its own bound."""
    timeout = next(setting for setting in TABLE if setting.name == "database_timeout")
    with pytest.raises(ValueError, match="at most"):
        timeout.parse(f"{(WRITER_SECONDS - _GRACE_SECONDS) * 1_000:.0f}ms")
    assert statements._WRITE_SECONDS < WRITER_SECONDS


async def test_commits_are_heard(store: Store, watch: Watch) -> None:
    """Each is one; reads and failures are none."""
    watch.commits.clear()
    await store.pets.add(REX, ACTOR)
    await store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff")
    await store.counters.save(LimiterState(), UsageChanges({}, {1: 5}))
    await store.pets.get_or_none(1)
    with pytest.raises(NotFound):
        await store.pets.change(9, PetChange(status=PetStatus.SOLD), "staff")
    assert watch.commits == [1, 1, 1]
