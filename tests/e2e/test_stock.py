"""A stock list is imported beside a serving process, and killed: all of it or nothing, and fresh pages.

The long campaign: python -m verification.torture imports
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.cluster import Client
from tests.support.imports import ROWS, finish, play, start_import, write_list
from tests.support.loops import working
from tests.support.report import Report
from tests.support.server import issue_key, running_server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-stock")]

KILLS = 1  # of each of two lists


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_pages_are_fresh_after_an_import(url: str, tmp_path: Path) -> None:
    """Whatever page was cached before, the first request after the end of the import sees its animals; what
    is added meanwhile is neither lost nor mixed up."""
    key = issue_key(url)
    with running_server(tmp_path, database_url=url) as server:
        server.key = key
        client = Client(server.port, server.key)
        target = "/v1/pets?status=pending&limit=100"
        added = [client.add("first").json()["id"]]

        def add(ended: threading.Event) -> None:
            beside = Client(server.port, server.key)
            while not ended.is_set():
                answer = beside.add("beside")
                assert answer.status == 201, answer.body
                added.append(answer.json()["id"])

        for name in ("old", "new"):
            for _ in range(3):
                server.request("GET", target)
            with working(add):
                summary = finish(start_import(write_list(tmp_path, name), url))
                page = server.request("GET", target).json()
            assert summary["added" if name == "old" else "changed"] == ROWS
            assert [pet["name"] for pet in page] == [f"{name} {number}" for number in range(100)]
        with server.client() as caller:
            listed = list(caller.pets.list())
        assert len(listed) == len({pet.id for pet in listed}) == ROWS + len(added)
        assert {pet.id for pet in listed if pet.name in ("beside", "first")} == set(added)
        client.close()


def test_a_killed_import_has_stored_all_or_nothing(url: str, tmp_path: Path) -> None:
    """SIGKILL at random moments: animals, source keys and journal agree, the server's pages show what is
    there, and the repetition completes it."""
    report = Report()
    play(url, tmp_path, report, 1, KILLS)
    assert report.faults == []
