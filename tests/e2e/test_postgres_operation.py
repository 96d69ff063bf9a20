"""What docs/operations.md says about copies of PostgreSQL and about its standby, with a real service."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer, programs, run
from tests.support.server import running_server
from tests.support.waiting import wait_for
from tools.servers import petstore
from tools.servers.find import as_nobody

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-postgres-operation")]


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """Ends every PostgreSQL that a test starts."""
    with ExitStack() as stack:
        yield stack


def test_the_service_follows_to_a_standby_that_was_promoted(servers: ExitStack, tmp_path: Path) -> None:
    """Both addresses are in PETSTORE_DATABASE_URL: writes go on without a restart, and nothing is missing."""
    primary = servers.enter_context(PostgresServer(tcp=True)).start()
    standby = servers.enter_context(PostgresServer(tcp=True))
    standby.follow(primary)
    standby.start()
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgresql://petstore@{hosts}/postgres?target_session_attrs=read-write"
    with running_server(tmp_path, database_url=url) as server:
        assert server.post({"name": "Rex", "categoryId": 1}).status == 201
        wait_for(lambda: run(standby.url(), "SELECT count(*) FROM pets") == [(1,)], "the standby to have it")
        primary.stop(signal.SIGQUIT)
        assert server.post({"name": "Lost", "categoryId": 1}).status == 503
        run(standby.url(), "SELECT pg_promote()")
        wait_for(lambda: server.post({"name": "Mia", "categoryId": 1}).status == 201, "the new primary")
        names = [pet["name"] for pet in server.request("GET", "/v1/pets").json()]
        assert names == ["Rex", "Mia"]


def test_a_dump_is_a_copy(servers: ExitStack, tmp_path: Path) -> None:
    """Made while the service runs, put into a new database: sound and whole, and numbers go on."""
    postgres = servers.enter_context(PostgresServer()).start()
    run(postgres.url(), "CREATE DATABASE restored")
    dump = postgres.folder / "petstore.dump"

    def tool(name: str, *words: str | Path) -> None:
        subprocess.run(
            [programs() / name, *words], **as_nobody(), check=True, capture_output=True, timeout=50
        )

    with running_server(tmp_path, database_url=postgres.url()) as server:
        first = server.post({"name": "Rex", "categoryId": 1}).json()["id"]
        tool("pg_dump", "--format=custom", "--file", dump, postgres.url())
        key = server.key
    tool("pg_restore", "--exit-on-error", "--single-transaction", "--dbname", postgres.url("restored"), dump)
    restored = postgres.url("restored")
    checked = petstore.run("db", "check", settings={"database_url": restored})
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with running_server(tmp_path, database_url=restored) as server:
        assert server.request("GET", f"/v1/pets/{first}", key=key).json()["name"] == "Rex"
        assert server.post({"name": "Mia", "categoryId": 1}, key=key).json()["id"] > first
