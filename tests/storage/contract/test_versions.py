"""Versions: whatever is kept is as new as the request, whoever wrote (I5, I14)."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import apsw
import pytest
import uvloop

from petstore.core.digests import digest
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.core.versions import Versions
from petstore.http.exchange import Exchange
from petstore.http.server import HttpServer
from petstore.storage.sqlite.connection import open_reader
from petstore.storage.sqlite.loop_reader import LoopReader
from petstore.storage.sqlite.schema import migrate
from petstore.storage.store import Store
from tests.support.backends import SharedData, execute_in_file
from tests.support.cases import every_case
from tests.support.journal import ACTOR
from tests.support.waiting import until
from tests.support.windows import used_of


async def turn() -> None:
    """One turn of the event loop: what was checked in this one is over."""
    await asyncio.sleep(0)


class Watched:
    """A store, and how its versions are to move."""

    def __init__(self, backend: SharedData, store: Store) -> None:
        self.store = store
        self._exact = backend.exact_versions

    async def begin(self) -> None:
        """Note the versions as they are."""
        await turn()
        self._before = await self.store.versions.current()

    async def check(self, *, catalogue: bool = False, keyring: bool = False) -> None:
        """What must have moved since has moved; what need not have stands, where versions are exact."""
        await turn()
        now, before = await self.store.versions.current(), self._before
        moved = (now.catalogue != before.catalogue, now.keyring != before.keyring)
        if self._exact:
            assert moved == (catalogue, keyring)
        else:
            assert (moved[0] or not catalogue, moved[1] or not keyring) == (True, True)


@pytest.fixture
async def watched(backend: SharedData) -> Watched:
    """An account, a key and an animal."""
    opened = backend.open()
    await opened.accounts.add("shop", FREE, ACTOR)
    await opened.keys.issue("shop", "test", ACTOR)
    await opened.pets.add(NewPet("Rex", 1), ACTOR)
    return Watched(backend, opened)


class TestWhatMoves:
    """A version moves whenever something that is kept under it changes."""

    async def test_animals_and_names_move_the_catalogue_alone(self, watched: Watched) -> None:
        """An addition, changes, a removal; kept answers with the old names of categories end too."""
        pets, categories = watched.store.pets, watched.store.categories
        for change in (
            pets.add(NewPet("Tom", 2), ACTOR),
            pets.change(1, PetChange(name="Rex II"), ACTOR),
            pets.change(1, PetChange(status=PetStatus.SOLD), ACTOR),
            pets.remove(2, ACTOR),
            categories.name(1, "Dogs", ACTOR),
            categories.name(1, "Cats", ACTOR),
            categories.unname(1, ACTOR),
        ):
            await watched.begin()
            await change
            await watched.check(catalogue=True)

    async def test_accounts_and_keys_move_the_keyring_alone(self, watched: Watched) -> None:
        """Each of their methods that changes something."""
        accounts, keys = watched.store.accounts, watched.store.keys
        for change in (
            accounts.add("other", FREE, ACTOR),
            keys.issue("shop", "test", ACTOR),
            accounts.set_plan("shop", PRO, ACTOR),
            accounts.suspend("shop", ACTOR),
            accounts.resume("shop", ACTOR),
            accounts.rename("other", "another", ACTOR),
            accounts.close("another", ACTOR),
            keys.rotate(1, "test", 1_000, ACTOR),
            keys.pardon(1, ACTOR),
            keys.revoke(1, ACTOR),
        ):
            await watched.begin()
            await change
            await watched.check(keyring=True)

    async def test_counters_move_nothing(self, watched: Watched) -> None:
        """A batch is written every second: what is kept survives it where versions are exact."""
        store = watched.store
        await watched.begin()
        state = LimiterState({1: used_of((1, 1), (1, 1))}, {1: BanState(strikes=1)})
        await store.counters.save(state, UsageChanges({(1, 7): DailyUsage(7, 1)}, {1: 5}))
        await store.purge(10**15)
        await watched.check()

    async def test_reading_moves_nothing(self, backend: SharedData, watched: Watched) -> None:
        """Reading and a refused change move no version, so what is kept serves on, with every store. Somebody
        else's transaction may move a server's snapshot at that moment, so it is looked at a few times."""
        store = watched.store

        async def moves() -> bool:
            await turn()
            before = await store.versions.current()
            await store.pets.get_or_none(1)
            await store.keys.find_caller(digest(b"x"))
            with pytest.raises(Exception, match="no animal 9"):
                await store.pets.change(9, PetChange(status=PetStatus.SOLD), "staff")
            await turn()
            return await store.versions.current() != before

        assert not all([await moves() for _ in range(1 if backend.exact_versions else 10)])

    @every_case(
        ("sql", "catalogue", "keyring"),
        [
            ("INSERT INTO pets (name, category_id, status) VALUES ('x', 1, 'sold')", True, False),
            ("UPDATE pets SET name = 'y'", True, False),
            ("DELETE FROM pets", True, False),
            ("UPDATE accounts SET per_minute = 1", False, True),
            ("UPDATE api_keys SET revoked_at_ms = 1", False, True),
            ("DELETE FROM api_keys", False, True),
        ],
    )
    async def test_an_outside_writer_is_seen(
        self, backend: SharedData, watched: Watched, sql: str, catalogue: bool, keyring: bool
    ) -> None:
        """Any other connection, even a SQL shell. (SQLite's file control would miss it.)"""
        await watched.begin()
        backend.execute(sql)
        await watched.check(catalogue=catalogue, keyring=keyring)

    async def test_what_was_seen_last_is_known_without_asking(self, watched: Watched) -> None:
        """What is read after it may be kept under it, once a decision brings the same."""
        await turn()
        seen = await watched.store.versions.current()
        assert watched.store.versions.known() == seen


class Spy:
    """SQLite's read connection, with a moment to act right after each look at the file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.looks = 0
        self.after_look: Any = None

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, bindings: tuple[Any, ...] = ()) -> Any:
        result = self._connection.execute(sql, bindings)
        if sql != "PRAGMA data_version":
            return result
        self.looks += 1
        value = result.get

        class Result:
            get = value

        if self.after_look is not None:
            act, self.after_look = self.after_look, None
            act()
        return Result


class TestTurn:
    """One check serves a whole turn of the event loop, and never a request that came after it."""

    @pytest.fixture
    def database(self, tmp_path: Path) -> str:
        path = str(tmp_path / "turn.db")
        migrate(path, 1_000)
        return path

    @pytest.fixture
    def spy(self, database: str) -> Spy:
        return Spy(open_reader(database, 1_000))

    @pytest.fixture
    def versions(self, spy: Spy) -> LoopReader:
        return LoopReader(spy)  # type: ignore[arg-type]

    def write(self, database: str) -> None:
        execute_in_file(
            Path(database), "INSERT INTO pets (name, category_id, status) VALUES ('x', 1, 'sold')"
        )

    async def test_one_look_serves_all_requests_of_a_turn(self, spy: Spy, versions: LoopReader) -> None:
        """A hundred requests that were received together; the next turn looks again."""
        loop = asyncio.get_running_loop()
        for _ in range(100):
            loop.call_soon(versions.known)
        await turn()
        assert spy.looks == 1
        await turn()
        versions.known()
        assert spy.looks == 2

    async def test_a_request_of_the_next_turn_sees_a_commit_of_this_one(
        self, database: str, versions: LoopReader
    ) -> None:
        """Checked, then committed outside, then received: it is seen."""
        loop = asyncio.get_running_loop()
        seen: list[Versions] = []
        first: Any = versions.known()
        self.write(database)
        loop.call_soon(lambda: seen.append(versions.known()))
        await turn()
        assert seen[0].catalogue == first.catalogue + 1

    async def test_a_request_received_during_the_check_does_not_use_it(
        self, database: str, spy: Spy, versions: LoopReader
    ) -> None:
        """Queued after the look at the file and before the check is noted, with a commit in between: it
        was received after that commit, so it must see it. This is why the end of a check's validity is
        queued before the check is made."""
        loop = asyncio.get_running_loop()
        seen: list[Versions] = []

        def meanwhile() -> None:
            self.write(database)
            loop.call_soon(lambda: seen.append(versions.known()))

        first: Any = versions.known()
        await turn()
        spy.after_look = meanwhile
        assert versions.known() == first
        await turn()
        await turn()
        assert seen[0].catalogue == first.catalogue + 1

    async def test_a_request_that_waited_does_not_renew_an_old_state(
        self, database: str, spy: Spy, versions: LoopReader
    ) -> None:
        """One request arrives during the check, then the turn reads a page, then another program commits and
        is answered, then a second request arrives: it must see the commit, whatever the first one found in
        the state that was still open."""
        loop = asyncio.get_running_loop()
        seen: list[Versions] = []
        first: Any = versions.known()
        await turn()
        spy.after_look = lambda: loop.call_soon(versions.known)
        assert versions.known() == first
        versions.execute("SELECT count(*) FROM pets").fetchall()
        self.write(database)
        loop.call_soon(lambda: seen.append(versions.known()))
        await turn()
        await turn()
        assert seen[0].catalogue == first.catalogue + 1

    def test_a_request_that_uvloop_reads_sees_a_commit_of_the_turn_before(self, database: str) -> None:
        """uvloop reads sockets before it runs what was queued, such as the end of what a turn has seen."""

        async def run(listener: socket.socket, client: socket.socket) -> None:
            versions, seen = LoopReader(open_reader(database, 1_000)), []

            def answer(exchange: Exchange) -> None:
                seen.append(versions.known().catalogue)
                exchange.answer(204, b"", None)

            server = HttpServer(answer, listener, 16, 60.0)
            serving = asyncio.create_task(server.serve())
            client.connect(listener.getsockname())
            await until(lambda: len(server) == 1)
            first: Any = versions.known().catalogue
            self.write(database)
            client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await until(lambda: bool(seen))
            assert seen == [first + 1]
            server.stop(1.0)
            client.close()
            await serving

        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.socket() as client,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(run(listener, client))

    async def test_queries_of_a_turn_see_one_state(self, database: str, versions: LoopReader) -> None:
        """What another program commits meanwhile is seen from the next turn on."""
        count = "SELECT count(*) FROM pets"
        assert versions.execute(count).get == 0
        self.write(database)
        assert versions.execute(count).get == 0
        await turn()
        assert versions.execute(count).get == 1

    async def test_a_failed_check_is_not_used(self, spy: Spy, versions: LoopReader) -> None:
        """The next request of the same turn looks for itself."""

        def fail() -> None:
            raise apsw.BusyError("locked")

        spy.after_look = fail
        with pytest.raises(Exception, match="busy"):
            versions.known()
        assert versions.known().catalogue == 1
        assert spy.looks == 2
