"""Snapshots as versions: one question serves all who wait, and none is answered from before it asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from petstore.core.errors import StoreUnavailable
from petstore.core.pets import NewPet
from petstore.core.versions import NO_VERSIONS, Versions
from petstore.storage.backend import backend_for
from petstore.storage.postgres.coalescing import CoalescedQuery
from petstore.storage.postgres.snapshots import SnapshotVersions
from petstore.storage.store import Store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database, plain_user, run
from tests.support.waiting import until


class Database:
    """Answers when it is told to; each question is one more."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers: list[asyncio.Future[tuple[str, str, str]]] = []

    async def fetch_row(self, _sql: str) -> Any:
        self.asked += 1
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]

    def answer(self, text: str) -> None:
        self.answers[-1].set_result((text, "start", "0/1"))


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def source(database: Database) -> SnapshotVersions:
    return SnapshotVersions(database)  # type: ignore[arg-type]


def of(text: str) -> Versions:
    return Versions((text, "start", "0/1"), (text, "start", "0/1"))


class TestSharing:
    """Who waits at the same time shares a question."""

    async def test_one_question_for_all_who_come_while_another_is_on_its_way(
        self, database: Database, source: SnapshotVersions
    ) -> None:
        """A hundred requests: none gets the answer to the question from before it came."""
        assert source.known() == NO_VERSIONS
        first = asyncio.create_task(source.current())
        await until(lambda: database.asked == 1)
        later = [asyncio.create_task(source.current()) for _ in range(100)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert database.asked == 1
        database.answer("1:1:")
        assert await first == of("1:1:")
        await until(lambda: database.asked == 2)
        database.answer("2:2:")
        assert set(await asyncio.gather(*later)) == {of("2:2:")}
        assert database.asked == 2

    async def test_a_failure_is_for_those_who_shared_it(
        self, database: Database, source: SnapshotVersions
    ) -> None:
        """The next ones ask anew."""
        first = asyncio.create_task(source.current())
        await until(lambda: database.asked == 1)
        failing = [asyncio.create_task(source.current()) for _ in range(3)]
        await asyncio.sleep(0)
        database.answer("1:1:")
        assert await first == of("1:1:")
        await until(lambda: database.asked == 2)
        good = asyncio.create_task(source.current())
        await asyncio.sleep(0)
        database.answers[-1].set_exception(StoreUnavailable("gone"))
        results = await asyncio.gather(*failing, return_exceptions=True)
        assert all(isinstance(result, StoreUnavailable) for result in results)
        await until(lambda: database.asked == 3)
        database.answer("3:3:")
        assert await good == of("3:3:")

    async def test_a_request_that_goes_away_takes_no_answer_with_it(
        self, database: Database, source: SnapshotVersions
    ) -> None:
        """A request that goes away, the asking one or the first to wait, takes no answer from the others."""
        first = asyncio.create_task(source.current())
        await until(lambda: database.asked == 1)
        second, third = asyncio.create_task(source.current()), asyncio.create_task(source.current())
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        await until(lambda: database.asked == 2)
        database.answer("2:2:")
        assert await third == of("2:2:")
        assert (first.cancelled(), second.cancelled()) == (True, True)

    async def test_a_question_without_an_answer_holds_up_nobody_for_long(self) -> None:
        """The connection may be dead, which is noticed later: the next question goes another way."""
        asked: list[set[int]] = []

        async def ask(wanted: set[int]) -> int:
            asked.append(wanted)
            if len(asked) == 1:
                await asyncio.Event().wait()
            return sum(wanted)

        shared = CoalescedQuery(ask, wait_seconds=0.01)
        silent = asyncio.create_task(shared.answer(1))
        await until(lambda: asked == [{1}])
        assert await asyncio.gather(*(shared.answer(number) for number in (2, 3, 3))) == [5, 5, 5]
        assert await shared.answer(4) == 4
        silent.cancel()


class TestRealSnapshots:
    """What PostgreSQL says."""

    @pytest.fixture
    def url(self) -> Iterator[str]:
        with fresh_database(migrated=True) as made:
            yield made

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        opened = backend_for(url).open(ManualClock())
        yield opened
        await opened.close()

    async def test_equal_versions_see_equal_data(self, store: Store) -> None:
        """Writers at work: whenever two readings of the version agree, so do the counts read between them."""

        async def write() -> None:
            for number in range(40):
                await store.pets.add(NewPet("x", number), ACTOR)

        counts: dict[Any, set[int]] = {}

        async def read() -> None:
            while not writing.done():
                before = await store.versions.current()
                rows = await store._database.fetch("SELECT count(*) FROM pets")  # type: ignore[attr-defined]
                if await store.versions.current() == before:
                    counts.setdefault(before.catalogue, set()).add(rows[0][0])

        writing = asyncio.gather(*(write() for _ in range(4)))
        await asyncio.gather(writing, *(read() for _ in range(4)))
        assert all(len(found) == 1 for found in counts.values())

    async def test_without_the_right_to_ask_nothing_is_kept(self, url: str, store: Store) -> None:
        """Somebody took away what PUBLIC may: the service goes on, and takes nothing for unchanged."""
        run(url, "REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC")
        with plain_user(url, "SELECT") as address:
            plain = backend_for(address).open(ManualClock())
            assert await plain.versions.current() == plain.versions.known() == NO_VERSIONS
            await plain.probe()
            await plain.close()
