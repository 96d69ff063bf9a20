"""/metrics of the real server: what only a process of its own has."""

from __future__ import annotations

import re
import resource
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from petstore.clock import SystemClock
from tests.support.server import PROGRAM, Server, environment, running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-metrics")]

CLIENTS = 25


def sample(server: Server, name: str) -> float:
    text = server.request("GET", "/metrics", key="").body.decode()
    (value,) = re.findall(rf"^{name} (\S+)$", text, re.M)
    return float(value)


def test_connections_are_those_of_clients(tmp_path: Path) -> None:
    """None of the server's own descriptors is one; that of the scrape is. They go when clients go."""
    with running_server(tmp_path) as server:
        assert sample(server, "petstore_connections") == 1
        with ExitStack() as stack:
            for _ in range(CLIENTS):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            wait_for(lambda: sample(server, "petstore_connections") == CLIENTS + 1, "the connections")
        wait_for(lambda: sample(server, "petstore_connections") == 1, "their end")


def test_the_time_of_the_last_backup(tmp_path: Path) -> None:
    """0 before the first one; then the time, also after a restart."""
    name = "petstore_backup_timestamp_seconds"
    with running_server(tmp_path) as server:
        assert sample(server, name) == 0
        settings = environment({"database_url": f"sqlite:///{server.database}"})
        began = SystemClock().now_ms() / 1_000
        subprocess.run([PROGRAM, "db", "backup", tmp_path / "copy.db"], env=settings, check=True)
        assert began - 1 < sample(server, name) < SystemClock().now_ms() / 1_000 + 1
    with running_server(tmp_path) as server:
        assert sample(server, name) > 0


def test_the_process_is_the_worker(tmp_path: Path) -> None:
    """Its memory as the system has it, and a start just now."""
    with running_server(tmp_path) as server:
        (worker,) = server.workers()
        pages = int(Path(f"/proc/{worker}/statm").read_text().split()[1])
        resident = sample(server, "process_resident_memory_bytes")
        assert 0.5 < resident / (pages * resource.getpagesize()) < 2
        assert 0 < SystemClock().now_ms() / 1_000 - sample(server, "process_start_time_seconds") < 30
