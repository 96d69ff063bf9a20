"""Clients that do not read their answers: they are cut off in time, and hold up neither others nor a stop."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

import apsw
import pytest

from tests.support.server import Server, running_server
from tests.support.stalled import DOCUMENT, StalledClient, held_connections, stalled_clients
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


class TestDeadline:
    """PETSTORE_ANSWER_TIMEOUT."""

    @pytest.mark.parametrize("target", ["/docs/guide", DOCUMENT])
    def test_a_client_that_takes_nothing_is_cut_off(self, tmp_path: Path, target: str) -> None:
        """After the deadline its connection is reset, its descriptor free again, and the log says so."""
        with running_server(tmp_path, answer_timeout="1s") as server:
            began = time.monotonic()
            client = StalledClient(server.port, target, requests=60)
            wait_for(client.is_ended, "the reset")
            assert time.monotonic() - began > 0.9
            wait_for(lambda: not held_connections(server.port), "its descriptor")
            wait_for(lambda: "ended connections whose clients took nothing" in server.log, "the line")
            client.close()

    def test_asking_for_more_is_not_reading(self, tmp_path: Path) -> None:
        """A client that reads nothing is cut off though new answers are always written for it."""
        with running_server(tmp_path, answer_timeout="1s") as server:
            client = StalledClient(server.port, "/healthz", requests=60)
            looks = itertools.count()

            def is_ended() -> bool:
                if next(looks) % 10 == 0:
                    with contextlib.suppress(OSError):
                        client.ask("/healthz")
                return client.is_ended()

            wait_for(is_ended, "the reset")
            client.close()

    def test_a_client_that_reads_slowly_gets_everything(self, tmp_path: Path) -> None:
        """A little at a time through a small window, for several times the deadline: nothing is missing."""
        with running_server(tmp_path, answer_timeout="2s") as server:
            length = len(server.request("GET", DOCUMENT, key="").body)
            client = StalledClient(server.port, requests=1)
            began = time.monotonic()
            taken = 0
            while time.monotonic() - began < 5:
                taken += client.take(65_536)
                pause(0.2)
            while taken < length:
                taken += client.take(65_536)
            client.close()
            assert "took nothing" not in server.log

    def test_an_idle_connection_is_not_meant(self, tmp_path: Path) -> None:
        """Whose answers were taken may stay as long as ever."""
        with running_server(tmp_path, answer_timeout="500ms") as server:
            idle = StalledClient(server.port, "/healthz", requests=1)
            wait_for(idle.is_answered, "the answer")
            with stalled_clients(server.port) as (stalled,):
                wait_for(stalled.is_ended, "the deadline")
            assert not idle.is_ended()
            assert server.request("GET", "/healthz", key="").status == 200
            idle.close()


class TestSlots:
    """All that a process may have open, with a small bound: 62 connections."""

    def test_when_all_are_taken_the_deadline_frees_them(self, tmp_path: Path) -> None:
        """Newcomers wait, and are served when the others are cut off."""
        with running_server(tmp_path, prefix=FEW_DESCRIPTORS, answer_timeout="5s") as server:
            with stalled_clients(server.port, 70):
                assert not serves(server)
                wait_for(lambda: serves(server), "a free slot")
            assert "Too many open files" not in server.log

    def test_pages_need_no_descriptor(self, tmp_path: Path) -> None:
        """With all slots but a few taken by clients of a file, each holds one, and pages are served."""
        with running_server(tmp_path, prefix=FEW_DESCRIPTORS, answer_timeout="30s") as server:
            before = descriptors(server)
            with stalled_clients(server.port, 58) as clients:
                wait_for(lambda: all(client.is_answered() for client in clients), "the answers")
                assert descriptors(server) <= before + 60
                for target in ("/", "/docs", DOCUMENT):
                    assert server.request("GET", target, headers={"Accept": "text/html"}).status == 200


class TestStop:
    """One client that does not read is there, and would be for half a minute."""

    def test_sigterm_ends_in_order(self, tmp_path: Path) -> None:
        """Within about two seconds, not the minute of a body; the counters are saved, the database is one
        file, and the exit code says that something was cut off."""
        with (
            running_server(tmp_path, body_timeout="60s") as server,
            stalled_clients(server.port) as (client,),
        ):
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
            client.take(50)
            began = time.monotonic()
            os.kill(server.pid, signal.SIGTERM)
            while server.process.poll() is None and time.monotonic() - began < 15:
                try:
                    client.take(50)
                except ConnectionResetError:
                    break
                pause(0.05)
            assert server.process.wait() == 3
            assert "does not stop" not in server.log  # a killed worker would be code 3 too

    def test_sighup_replaces_the_worker(self, tmp_path: Path) -> None:
        """New requests wait for about two seconds at most, not for the minute of a body."""
        with (
            running_server(tmp_path, body_timeout="60s") as server,
            stalled_clients(server.port) as (client,),
        ):
            wait_for(client.is_answered, "the stalled answer")
            (first,) = server.workers()
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: first not in server.workers(), "the end of the worker")
            assert server.request("GET", "/healthz", key="").status == 200
            assert "does not stop" not in server.log

    def test_a_killed_parent_leaves_nothing(self, tmp_path: Path) -> None:
        """The worker ends by itself: the next start finds the port and the database free."""
        with running_server(tmp_path) as server, stalled_clients(server.port) as (client,):
            wait_for(client.is_answered, "the stalled answer")
            (orphan,) = server.workers()
            server.process.kill()
            server.process.wait()
            wait_for(lambda: not Path(f"/proc/{orphan}").exists(), "its end")
            with running_server(tmp_path, port=server.port) as after:
                assert after.request("GET", "/healthz").status == 200
            wait_for(client.is_ended, "its end")
