"""Clients that do not read their answers: they are cut off in time, and hold up neither others nor a stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.server import Server, running_server
from tests.support.stalled import DOCUMENT, held_connections, stalled_clients
from tests.support.waiting import pause, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-stalled")]

FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 200; exec "$@"', "sh")


def serves(server: Server, target: str = "/healthz") -> bool:
    """Whether a new client is answered within a moment."""
    try:
        answer = server.request("GET", target, headers={"Accept": "text/html"}, key="", timeout=0.5)
    except OSError:
        return False
    return answer.status == 200


def descriptors(server: Server) -> int:
    """How many the one worker has open."""
    (worker,) = server.workers()
    return len(list(Path(f"/proc/{worker}/fd").iterdir()))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has 62 slots."""
    folder = tmp_path_factory.mktemp("small")
    with running_server(folder, prefix=FEW_DESCRIPTORS, answer_timeout="5s") as running:
        yield running


class TestSlots:
    """All that a process may have open, with a small bound: 62 connections."""

    def test_when_all_are_taken_the_deadline_frees_them(self, small: Server) -> None:
        """Newcomers wait, and are served when the others are cut off."""
        with stalled_clients(small.port, 70):
            assert not serves(small)
            wait_for(lambda: serves(small), "a free slot")
        assert "Too many open files" not in small.log

    def test_pages_need_no_descriptor(self, small: Server) -> None:
        """Clients of a file take all slots but a few, and one descriptor each; pages are still served."""
        wait_for(lambda: not held_connections(small.port), "the end of other clients")
        before = descriptors(small)
        with stalled_clients(small.port, 58) as clients:
            wait_for(lambda: all(client.is_answered() for client in clients), "the answers")
            assert descriptors(small) <= before + 60
            for target in ("/", "/docs", DOCUMENT):
                assert small.request("GET", target, headers={"Accept": "text/html"}).status == 200


class TestStop:
    """One client that does not read is there, and would be for half a minute."""

    def test_sighup_and_sigterm(self, tmp_path: Path) -> None:
        """Each ends a worker within about two seconds, not the minute of a body: the next one serves; at a
        stop the counters are saved, the database is one file, and the exit code says that something was cut
        off."""
        with running_server(tmp_path, body_timeout="60s") as server:
            with stalled_clients(server.port) as (client,):
                wait_for(client.is_answered, "the stalled answer")
                (first,) = server.workers()
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: first not in server.workers(), "the end of the worker")
                assert server.request("GET", "/healthz", key="").status == 200
            with stalled_clients(server.port) as (client,):
                assert server.post({"name": "Rex", "categoryId": 1}).status == 201
                wait_for(client.is_answered, "the stalled answer")
                assert server.terminate() == 3
            assert "Stopped, but some answers were cut off" in server.log
            assert "does not stop" not in server.log
        files = (file.name for file in tmp_path.iterdir())
        kept = sorted(name for name in files if not (name.endswith(".log") or "-search" in name))
        assert kept == ["petstore.db", "petstore.db.lock", "petstore.db.reserve"]
        connection = apsw.Connection(str(tmp_path / "petstore.db"))
        assert list(connection.execute("SELECT requests FROM usage_days")) == [(1,)]
        connection.close()

    def test_a_slow_reader_has_as_long_as_a_body(self, tmp_path: Path) -> None:
        """It goes on taking a little, and is cut off at the deadline for bodies: the stop ends, with 3."""
        with running_server(tmp_path, body_timeout="1s") as server, stalled_clients(server.port) as (client,):
            client.take(1_000)
            began = time.monotonic()
            os.kill(server.pid, signal.SIGTERM)
            while server.process.poll() is None and time.monotonic() - began < 15:
                try:
                    client.take(1_000)
                except ConnectionResetError:
                    break
                pause(0.05)
            assert server.process.wait() == 3
            assert "does not stop" not in server.log  # a killed worker would be code 3 too
