"""A stock list is imported beside a serving process, and killed: all of it or nothing, and fresh pages."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.support.cluster import Client
from tests.support.postgres import fresh_database, run
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import pause
from tools.servers.petstore import PROGRAM, environment

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-stock")]

ROWS = 4_000
KILLS = 12
COUNTS = (
    "SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM pet_sources),"
    " (SELECT count(*) FROM journal WHERE subject = 'pet' AND action = 'added'),"
    " (SELECT count(*) FROM journal WHERE subject = 'pet' AND action = 'changed')"
)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/petstore.db"
        return
    with fresh_database() as address:
        yield address


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Server]:
    """A server on it, with a key."""
    key = issue_key(url)
    with running_server(tmp_path, database_url=url) as running:
        running.key = key
        yield running


def counts(url: str) -> tuple[int, ...]:
    """Animals, source keys, and entries of additions and changes, in one state of the database."""
    if not url.startswith("sqlite"):
        return run(url, COUNTS)[0]
    with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
        found: tuple[int, ...] = connection.execute(COUNTS).get
        return found


def write_list(folder: Path, name: str) -> Path:
    path = folder / "stock.csv"
    rows = "".join(f"K{number},{name} {number},{number % 9},pending\n" for number in range(ROWS))
    path.write_text(f"sku,name,categoryId,status\n{rows}")
    return path


def start_import(path: Path, url: str) -> subprocess.Popen[bytes]:
    command = [str(PROGRAM), "pets", "import", str(path), "--source-key", "sku", "--json"]
    return subprocess.Popen(
        command,
        env=environment({"database_url": url}),
        cwd=path.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(importing: subprocess.Popen[bytes]) -> dict[str, int]:
    out, err = importing.communicate(timeout=60)
    assert importing.returncode == 0, err
    summary: dict[str, int] = json.loads(out)
    return summary


def test_pages_are_fresh_after_an_import(server: Server, url: str, tmp_path: Path) -> None:
    """Whatever page was cached before, the first request after the end of the import sees its animals; what
    is added meanwhile is neither lost nor mixed up."""
    client = Client(server.port, server.key)
    target = "/v1/pets?status=pending&limit=100"
    added = [client.add("first").json()["id"]]
    ended = threading.Event()

    def add() -> None:
        beside = Client(server.port, server.key)
        while not ended.is_set():
            answer = beside.add("beside")
            assert answer.status == 201, answer.body
            added.append(answer.json()["id"])

    for name in ("old", "new"):
        for _ in range(3):
            server.request("GET", target)
        thread = threading.Thread(target=add)
        thread.start()
        summary = finish(start_import(write_list(tmp_path, name), url))
        page = server.request("GET", target).json()
        ended.set()
        thread.join()
        ended.clear()
        assert summary["added" if name == "old" else "changed"] == ROWS
        assert [pet["name"] for pet in page] == [f"{name} {number}" for number in range(100)]
    with server.client() as caller:
        listed = list(caller.pets.list())
    assert len(listed) == len({pet.id for pet in listed}) == ROWS + len(added)
    assert {pet.id for pet in listed if pet.name in ("beside", "first")} == set(added)
    client.close()


def test_a_killed_import_has_stored_all_or_nothing(server: Server, url: str, tmp_path: Path) -> None:
    """SIGKILL at random moments: animals, source keys and journal agree, and the repetition completes it."""
    seed = int(os.environ.get("PETSTORE_TEST_SEED", "0")) or random.randrange(10**9)
    chance = random.Random(seed)
    path = write_list(tmp_path, "old")
    for attempt in range(KILLS):
        importing = start_import(path, url)
        pause(chance.uniform(0.3, 1.6))
        importing.kill()
        importing.communicate()
        pets, sources, entries, changes = counts(url)
        assert pets == sources == entries, (seed, attempt)
        assert (pets, changes) in ((0, 0), (ROWS, 0)), (seed, attempt)
        page = server.request("GET", "/v1/pets?limit=1").json()
        assert [pet["name"] for pet in page] == (["old 0"] if pets else []), (seed, attempt)
    summary = finish(start_import(path, url))
    assert summary["added"] + summary["unchanged"] == ROWS
    path = write_list(tmp_path, "new")
    for attempt in range(KILLS):
        importing = start_import(path, url)
        pause(chance.uniform(0.3, 1.6))
        importing.kill()
        importing.communicate()
        assert counts(url) in ((ROWS, ROWS, ROWS, 0), (ROWS, ROWS, ROWS, ROWS)), (seed, attempt)
    finish(start_import(path, url))
    assert counts(url) == (ROWS, ROWS, ROWS, ROWS)
