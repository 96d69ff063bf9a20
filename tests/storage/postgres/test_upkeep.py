"""The schema's steps in PostgreSQL, the check, and what is left to PostgreSQL's own tools."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from petstore.core.errors import ConfigurationError, OperatorError, StoreUnavailable
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet
from petstore.storage import migrations
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import schema
from petstore.storage.postgres.own_connection import on_connection
from petstore.storage.postgres.pool import Connection
from petstore.storage.postgres.schema import migrate
from petstore.storage.postgres.upkeep import check
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import (
    by_way_of,
    configure,
    fresh_database,
    listening_address,
    outside,
    plain_user,
    run,
    shared_url,
)
from tests.support.proxy import open_proxy
from tests.support.schemas import Know, at_once, knowing, make_first_release
from tests.support.waiting import until

NEWEST = migrations.load(schema.MIGRATIONS_PACKAGE)[-1].number
OPTIONS = PostgresOptions()


@pytest.fixture
def database() -> Iterator[str]:
    """An empty database."""
    with fresh_database() as url:
        yield url


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Know:
    """Let the program know further steps, given as SQL, after its own."""
    return knowing(monkeypatch)


def tables(url: str) -> set[object]:
    """The names of the tables that are there."""
    return {row[0] for row in run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


@contextmanager
def locked(url: str, table: str) -> Iterator[None]:
    """Somebody else's open transaction that nobody can read the table beside."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(url))
        try:
            runner.run(connection.execute(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
            yield
        finally:
            connection.terminate()


class TestMigrate:
    """Numbered files, in order, each whole or not at all."""

    def test_somebody_else_s_lock_is_not_waited_out(self, database: str) -> None:
        """Every start and every command looks at the version first: that is bounded as every statement is."""
        migrate(database, OPTIONS)
        with pytest.raises(StoreUnavailable, match="took too long"), locked(database, "schema_migrations"):
            migrate(database, PostgresOptions(timeout_ms=1_000))
        assert migrate(database, OPTIONS) == []

    def test_a_table_in_use_is_not_waited_for(
        self, database: str, plan: Know, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A dump reads it, for example: who waits to change it would hold up every query behind it."""
        monkeypatch.setattr(schema, "_TABLE_WAIT", "20ms")
        migrate(database, OPTIONS)
        plan("ALTER TABLE pets ADD COLUMN chip text")
        with pytest.raises(StoreUnavailable, match="is held up by session"), locked(database, "pets"):
            migrate(database, OPTIONS)
        assert len(migrate(database, OPTIONS)) == 1

    async def test_whoever_holds_a_step_up_is_named(
        self, database: str, plan: Know, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The message has what is needed to find and end the session, and how far the migration has come.
        Where the server hides it from this user, the session's number and user are left."""
        monkeypatch.setattr(schema, "_TABLE_WAIT", "20ms")
        migrate(database, OPTIONS)
        plan("CREATE TABLE first (a int)", "ALTER TABLE pets ADD COLUMN chip text")
        run(database, "GRANT CREATE ON SCHEMA public TO PUBLIC")
        with plain_user(database, owns=True) as plain:
            read = "BEGIN; SELECT 1 FROM pets;\tSELECT 'of the same transaction', now()"
            async with outside(database, read, name="nightly") as reader:
                begins = (
                    f"The migration is held up by session {reader.get_server_pid()} of petstore (nightly)"
                )
                told = []
                for url in (plain, database):
                    with pytest.raises(StoreUnavailable) as refused:
                        await asyncio.to_thread(migrate, url, OPTIONS)
                    told.append(refused.value.message)
        assert told[0] == f"{begins}. 1 of 2 steps are done; repeat the command to go on."
        moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        assert re.sub(moment, "NOW", told[1]) == (
            f"{begins}, in a transaction since NOW, idle in transaction: BEGIN; SELECT 1 FROM pets; SELECT"
            " 'of the same transaction',…. 0 of 1 steps are done; repeat the command to go on."
        )

    def test_a_step_takes_as_long_as_it_needs(self, database: str, plan: Know) -> None:
        """The database ends its users' statements early: that is meant for the service's."""
        migrate(database, OPTIONS)
        configure(database, "statement_timeout = '300ms'")
        plan("CREATE TABLE made (a int); SELECT pg_sleep(0.5)")
        assert len(migrate(database, OPTIONS)) == 1

    async def test_a_step_ends_with_whoever_ran_it(
        self, database: str, plan: Know, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Interrupted, killed or cut off: the server does not go on with it, and holds no table up."""
        monkeypatch.setattr(schema, "_CHECK_INTERVAL", "20ms")
        migrate(database, OPTIONS)
        plan("ALTER TABLE pets ADD COLUMN chip text; SELECT pg_sleep(60)")
        at_work = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE "
        async with open_proxy(listening_address(database)) as proxy:
            through = by_way_of(database, proxy.port)
            migrating = asyncio.create_task(asyncio.to_thread(migrate, through, OPTIONS))
            await until(lambda: run(database, f"{at_work} 'ALTER TABLE pets%'") == [(1,)])
            proxy.cut()
            with pytest.raises(StoreUnavailable):
                await migrating
            await until(lambda: run(database, f"{at_work} 'ALTER TABLE pets%'") == [(0,)])
        assert run(database, "SELECT count(*) FROM pets") == [(0,)]

    def test_an_encoding_that_cannot_hold_every_name_is_refused_at_first(self, database: str) -> None:
        """Nothing is created in such a database."""
        name = urlsplit(database).path[1:]
        run(shared_url(), f"DROP DATABASE {name}")
        run(
            shared_url(),
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
        )
        with pytest.raises(ConfigurationError, match="encoded in LATIN1"):
            migrate(database, OPTIONS)
        assert tables(database) == set()

    def test_a_user_who_may_not_create_anything(self, database: str) -> None:
        """May serve from a schema that is up to date, and is told when it is not."""
        run(database, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        with plain_user(database) as plain:
            with pytest.raises(ConfigurationError, match="GRANT CREATE ON SCHEMA public"):
                migrate(plain, OPTIONS)
            migrate(database, OPTIONS)
            run(database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")
            assert migrate(plain, OPTIONS) == []

    def test_a_user_with_rights_on_the_tables_of_before(
        self, database: str, plan: Know, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Serves on after the owner has migrated, without rights on the table that came with it."""
        make_first_release(database, monkeypatch)
        with plain_user(database, "SELECT") as plain:
            plan("ALTER TABLE pets ADD COLUMN chip text")
            assert migrate(database, OPTIONS)
            assert on_connection(plain, OPTIONS, schema.read).version == NEWEST + 1


class TestAtOnce:
    """Several replicas start on the same new database."""

    @pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
    def test_whatever_transactions_see_by_default(self, database: str, isolation: str) -> None:
        """They may see what was there when they began to wait: each step runs once, nobody fails."""
        configure(database, f"default_transaction_isolation = '{isolation}'")
        assert sum(map(len, at_once(lambda: migrate(database, OPTIONS)))) == NEWEST

    async def test_who_waits_for_another_for_too_long_is_told(
        self, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another process holds the lock and does not come to an end."""
        monkeypatch.setattr(schema, "_LOCK_WAIT", "20ms")
        async with outside(database, f"SELECT pg_advisory_lock({schema._LOCK})") as holder:
            named = f"is held up by session {holder.get_server_pid()} of"
            with pytest.raises(StoreUnavailable, match=named):
                await asyncio.to_thread(migrate, database, OPTIONS)
        assert tables(database) == set()


class TestCheck:
    """What `petstore db check` finds."""

    async def test_a_sound_database_has_counts_and_no_problems(self, database: str) -> None:
        """An operator reads from them that the check has seen everything."""
        store = backend_for(database).open(ManualClock())
        await store.accounts.add("shop", FREE, ACTOR)
        await store.keys.issue("shop", "test", ACTOR)
        for _ in range(3):
            await store.pets.add(NewPet("x", 1), ACTOR)
        await store.close()
        report = on_connection(database, OPTIONS, check, bounded=False)
        assert (report.schema_version, report.pets, report.accounts, report.keys) == (NEWEST, 3, 1, 1)
        assert report.problems == []

    def test_a_server_that_may_lose_what_it_acknowledged(self, database: str) -> None:
        """A commit that does not wait for the disk breaks the promise of a 201."""
        migrate(database, OPTIONS)
        configure(database, "synchronous_commit = off")
        assert on_connection(database, OPTIONS, check, bounded=False).problems == [
            "synchronous_commit is off: a crash may lose what was acknowledged"
        ]


class TestOpening:
    """The commands, by the settings."""

    def test_copies_are_left_to_its_own_tools(self, database: str) -> None:
        """One line that names them."""
        with pytest.raises(OperatorError, match=r"pg_dump.*pg_restore"):
            backend_for(database).require_file()

    def test_a_name_for_people_shows_no_password(self) -> None:
        """What commands print goes by it."""
        backend = backend_for("postgresql://anna:hush@db.example:5433/shop?x=hush")
        assert backend.name == "postgresql://db.example:5433/shop"

    def test_without_the_driver_the_remedy_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One line: which extra to install."""
        for name in [name for name in sys.modules if name.startswith("petstore.storage.postgres")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "asyncpg", None)
        with pytest.raises(
            ConfigurationError,
            match=r"^PETSTORE_DATABASE_URL names PostgreSQL.*`make setup-scale` installs it",
        ):
            backend_for("postgresql://db/x").open(ManualClock())


def test_work_before_a_fork_needs_no_thread() -> None:
    """One that ends holds locks of OpenSSL, for which a worker that is forked then would wait for ever."""

    async def thread(_: Connection) -> int:
        return threading.get_ident()

    assert on_connection(shared_url(), OPTIONS, thread) == threading.get_ident()
