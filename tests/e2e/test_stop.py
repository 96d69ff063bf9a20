"""How the real server stops: what was accepted is answered, counters are exact, within 10 s (I16)."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.backends import execute_in_file
from tests.support.raw import RawConnection
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-stop")]

BODY = b'{"name":"Rex","categoryId":1}'


def query(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows of the server's database."""
    return execute_in_file(folder / "petstore.db", sql)


def begin_post(server: Server) -> RawConnection:
    """A POST whose head is with the application, and whose body is on its way."""
    connection = RawConnection(server.port)
    connection.send(
        b"POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (server.key.encode(), len(BODY))
    )
    interim = connection.read()
    assert interim.status == 100
    connection.send(BODY[:9])
    return connection


class TestSigterm:
    """An orderly stop."""

    def test_a_request_in_flight_is_finished(self, tmp_path: Path) -> None:
        """The body comes after the signal; it is stored and answered, new connections are refused."""
        with running_server(tmp_path) as server:
            connection = begin_post(server)
            os.kill(server.pid, signal.SIGTERM)

            def refused() -> bool:
                try:
                    server.request("GET", "/healthz", key="", timeout=20)
                except OSError:
                    return True
                return False

            wait_for(refused, "the listener to close")
            connection.send(BODY[9:])
            answer = connection.read()
            assert answer.status == 201
            assert server.process.wait() == 0
            assert '"event":"stopped"' in server.log.splitlines()[-1]
        assert query(tmp_path, "SELECT id, name FROM pets") == [(1, "Rex")]

    def test_counters_are_exact_after_it_and_after_sigint(self, tmp_path: Path) -> None:
        """Requests, refusals and calls of the deprecated operation; Remaining goes on where it was. Ctrl+C in
        a terminal reaches the worker as well; the stop is as orderly, without the drain."""
        with running_server(tmp_path) as server:
            for _ in range(40):
                server.request("GET", "/v1/pets")
            for _ in range(20):
                server.request("GET", "/v1/pets/1")
            last = [server.request("GET", "/v1/pets").status for _ in range(7)]
            key = server.key
        assert last == [429] * 7
        assert query(tmp_path, "SELECT requests, refused, deprecated FROM usage_days") == [(60, 7, 20)]
        assert query(tmp_path, "SELECT minute_used, day_used FROM account_windows") == [(60, 60)]
        with running_server(tmp_path, drain="60s") as again:
            answer = again.request("GET", "/v1/pets", key=key)
            assert (answer.status, answer.json()["code"]) == (429, "rate_limited")
            os.killpg(again.pid, signal.SIGINT)
            assert again.process.wait(45) == 0
            assert "Traceback" not in again.log
        assert query(tmp_path, "SELECT requests, refused, deprecated FROM usage_days") == [(60, 8, 20)]

    def test_signals_that_come_more_than_once(self, tmp_path: Path) -> None:
        """A service manager signals every process of the group, an impatient operator does it again, and the
        parent passes on its own: the worker heeds one, stops in order and counts exactly."""
        with running_server(tmp_path) as server:
            assert server.post({"name": "Rex", "categoryId": 1}).status == 201
            for number in range(12):
                try:
                    os.killpg(server.pid, signal.SIGTERM if number % 3 else signal.SIGINT)
                except ProcessLookupError:
                    break
                threading.Event().wait(0.0002 * (number // 3))
            # One of the signals may come when all is done and Python no longer handles any.
            assert server.process.wait() in {0, -signal.SIGTERM, -signal.SIGINT}
            assert "died" not in server.log
        assert query(tmp_path, "SELECT requests FROM usage_days") == [(1,)]

    @pytest.mark.parametrize("milliseconds", [0, 120])
    def test_a_stop_during_the_start(self, tmp_path: Path, milliseconds: int) -> None:
        """It does not wait for a worker that has nothing to finish."""
        issue_key(tmp_path / "petstore.db")
        server = Server(tmp_path, drain=None)
        server.launch()
        try:
            wait_for(lambda: "Pet Store Service at" in server.log, "the start")
            threading.Event().wait(milliseconds / 1_000)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait() in {0, -signal.SIGTERM}  # the latter while no handler is set yet
            assert "does not stop" not in server.log
        finally:
            server.kill()
