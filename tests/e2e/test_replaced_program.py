"""The program is replaced on the disk while it runs: parent and workers go on with what they began with."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import fresh_database
from tests.support.programs import Copy
from tests.support.server import Server, first_key, issue_key
from tests.support.valkey import Client, emptied_url
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-replaced")]

_NEWER = {
    ".py": "raise SystemExit('a module of a newer program')\n",
    ".sql": "-- oldest: 1\na statement of a newer program;\n",
    ".lua": "a script of a newer program",
}


def replace(package: Path) -> None:
    """Put a newer program in its place, of which nothing works with what runs."""
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            path.write_text(_NEWER.get(path.suffix, "newer"))


@pytest.fixture(params=["sqlite", "postgresql and valkey"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Each database with its SQL, and the counters with their Lua."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            issue_key(tmp_path / "petstore.db")
            yield {"database_url": f"sqlite:///{tmp_path}/petstore.db"}
        else:
            yield {"database_url": stack.enter_context(fresh_database()), "valkey_url": emptied_url()}


def metrics(server: Server) -> dict[str, float]:
    """What the parent has left to be shown."""
    shown = server.request("GET", "/metrics", key="").body.decode()
    pattern = r"^(petstore_(?:workers|worker_restarts|reloads|package)\S*) (\S+)$"
    return {name: float(value) for name, value in re.findall(pattern, shown, re.M)}


def wait_for_others(server: Server, before: list[int]) -> None:
    wait_for(lambda: bool(server.workers()) and not set(server.workers()) & set(before), "a new worker")
    server.wait_until_ready()


def test_workers_go_on_with_the_program_of_their_parent(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Workers that start after a reload or a worker's death have the pages, SQL, Lua and code of their
    parent, though the disk has another program; a line and a metric say that once."""
    copy = Copy(tmp_path / "lib")
    server = Server(tmp_path, program=copy.program, **settings)
    server.launch()
    try:
        server.wait_until_ready()
        server.key = first_key(server)
        status = 200 if server.key else 401
        pages = {target: server.request("GET", target).body for target in ("/docs", "/openapi.yaml")}
        wait_for(lambda: metrics(server).get("petstore_workers") == 1, "the parent's numbers")
        assert metrics(server)["petstore_package_replaced"] == 0
        replace(copy.package)
        # Both reloads, which show that it is told once, with one of the databases.
        numbers = [signal.SIGHUP, signal.SIGKILL] + [signal.SIGHUP] * ("valkey_url" in settings)
        reloads = 0
        for number in numbers:
            before = server.workers()
            if "valkey_url" in settings:
                Client(settings["valkey_url"])("SCRIPT", "FLUSH")
            os.kill(server.pid if number == signal.SIGHUP else before[0], number)
            wait_for_others(server, before)
            reloads += number == signal.SIGHUP
            # The next signal must not meet a reload that is under way.
            wait_for(lambda: metrics(server)['petstore_reloads_total{result="done"}'] == reloads, "its count")  # noqa: B023
            assert server.request("GET", "/v1/pets").status == status
            assert {target: server.request("GET", target).body for target in pages} == pages
            for address in re.findall(rb'"(/?[./]*static/[^"]+)"', pages["/docs"]):
                assert server.request("GET", f"/{address.decode().lstrip('./')}").status == 200
        shown = metrics(server)
        assert shown["petstore_package_replaced"] == 1
        assert shown['petstore_worker_restarts_total{cause="signal"}'] == 1
        assert shown['petstore_worker_restarts_total{cause="hung"}'] == 0
        assert server.terminate() == 0
        events = [json.loads(line)["event"] for line in server.log.splitlines() if line.startswith("{")]
        assert events.count("program replaced") == 1
        assert "newer program" not in server.log
    finally:
        server.kill()


def test_a_program_that_can_not_be_loaded_whole_does_not_start(tmp_path: Path) -> None:
    """A module that the background process alone needs counts too: no service ends after it said that it is
    ready."""
    copy = Copy(tmp_path / "lib")
    (copy.package / "background" / "mailing.py").write_text("raise ImportError('half an upgrade')\n")
    issue_key(tmp_path / "petstore.db")
    server = Server(tmp_path, program=copy.program, database_url=f"sqlite:///{tmp_path}/petstore.db")
    server.launch()
    try:
        assert server.process.wait(PATIENCE_SECONDS) == 1
        events = [json.loads(line)["event"] for line in server.log.splitlines() if line.startswith("{")]
        assert "parent failed" in events
        assert "ready" not in events
    finally:
        server.kill()
