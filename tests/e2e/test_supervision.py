"""The parent and its worker: signals that must not double the counters, and ends that must not be silent."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

from tests.support.server import PROGRAM, environment, free_port, running_server, start_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-supervision")]


class TestSighup:
    """A terminal that is closed, or an operator who expects a reload."""

    def test_stops_in_order_and_never_runs_two_workers(self, tmp_path: Path) -> None:
        """Two workers would both count: the service stops as on SIGTERM, with its counters saved."""
        with running_server(tmp_path) as server:
            assert server.request("GET", "/v1/pets").status == 200
            os.killpg(server.pid, signal.SIGHUP)  # as a terminal does: to the worker too
            assert server.process.wait(15) == 0
            assert server.log.endswith("Stopped.\n")
        connection = apsw.Connection(str(server.database))
        assert connection.execute("SELECT day_used FROM account_windows").get == 1
        connection.close()


class TestEnds:
    """A service that can't go on says why."""

    def test_a_worker_that_dies_at_once_again_ends_the_service_with_a_word(self, tmp_path: Path) -> None:
        """The first death is mended, a second one within seconds is told; exit 1."""
        server = start_server(tmp_path)
        try:
            first = server.workers()
            for pid in first:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: bool(set(server.workers()) - set(first)), "the next worker")
            for pid in set(server.workers()) - set(first):
                os.kill(pid, signal.SIGKILL)
            assert server.process.wait(15) == 1
            assert "its worker died twice within seconds" in server.log
        finally:
            server.kill()

    def test_a_start_that_fails_is_told(self, tmp_path: Path) -> None:
        """The reason stands in the log, also when it is found only in the worker."""
        with running_server(tmp_path):
            pass
        connection = apsw.Connection(str(tmp_path / "petstore.db"))
        connection.execute("DROP TABLE key_standings")
        connection.close()
        settings = {"database_url": f"sqlite:///{tmp_path / 'petstore.db'}", "port": str(free_port())}
        done = subprocess.run(
            [PROGRAM, "serve"],
            cwd=tmp_path,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 1
        assert "start failed" in done.stderr
        assert "The store failed" in done.stderr
