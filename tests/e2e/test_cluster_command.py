"""`make cluster` as an operator meets it: what it prints works as pasted, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from petstore.core.keys import KEY_PATTERN
from tests.architecture.sources import ROOT
from tests.support import machine
from tests.support.waiting import wait_for
from tools.cluster.__main__ import main
from tools.servers.child import Child, family
from tools.servers.ports import free_ports, is_free

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("e2e-cluster"),
]


class Command(Child):
    """The running command, with what it keeps in `data`."""

    def __init__(self, data: Path, *words: str) -> None:
        self.data = data
        self.port = free_ports(5)[0]
        where = ("--data", str(data), "--port", str(self.port))
        command = [sys.executable, "-m", "tools.cluster", *where, *words]
        super().__init__("make cluster", command, data.with_name(f"output-{self.port}"), cwd=ROOT)
        self.start(os.environ | {"SSL_CERT_FILE": os.devnull})

    def commands(self, begin: str) -> list[str]:
        """The printed lines that begin so."""
        return [line.strip() for line in self.said.splitlines() if line.startswith(f"  {begin}")]

    def children(self) -> set[int]:
        """Everything that it has started, and what these have."""
        return set(family(self.pid)) - {self.pid}


@contextmanager
def command(*words: str) -> Iterator[Command]:
    machine.program("nginx")
    with machine.folder() as path:
        started = Command(path / "data", *words)
        try:
            started.wait_until(lambda: "Ctrl+C" in started.said)
            yield started
        finally:
            started.kill()


def shell(line: str) -> str:
    """What a line prints in a shell, in the checkout."""
    done = subprocess.run(
        ["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_what_it_prints_works_and_it_leaves_nothing_behind() -> None:
    """Each line for curl, the command line and psql; a rolling restart. SIGTERM ends all in order, and a
    second start finds what it left; at a SIGKILL to that the kernel tells its children to stop (Linux)."""
    machine.program("curl")
    with command() as running:
        key = re.search(KEY_PATTERN, running.said)
        assert key is not None
        lists: list[str] = []
        posts: list[str] = []
        others: list[str] = []
        for line in running.commands("curl"):
            (posts if " -d " in line else lists if "/v1/pets" in line else others).append(line)
        assert (len(lists), len(posts), len(others)) == (3, 1, 1)
        assert "201 Created" in shell(posts[0])
        for line in lists:
            assert '"name":"Rex"' in shell(line)
        assert "petstore_requests_total" in shell(others[0])
        (usage,) = running.commands("PETSTORE_")
        assert "local" in shell(usage)
        clients = [line.split()[0] for line in running.commands("") if "-cli -u " in line]
        assert all(Path(client).exists() for client in clients)
        assert clients or "There is no valkey-cli here" in running.said
        (psql,) = [line for line in running.commands("") if "/psql " in line or line.startswith("psql ")]
        if Path(psql.split()[0]).exists():
            assert "Rex" in shell(f"{psql} -Atc 'SELECT name FROM pets'")
        (restart,) = running.commands("make cluster")
        words = re.sub(r"^make cluster ARGS='(.*)'$", r"\1", restart)
        before = running.children()
        shell(f"{sys.executable} -m tools.cluster {words}")
        children = running.children()
        assert len(before & children) < len(before)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait() == 0
        assert running.said.endswith("Stopped; nothing runs any more.\n")
        assert [pid for pid in before | children if Path(f"/proc/{pid}").exists()] == []
        assert all(is_free(port) for port in range(running.port, running.port + 5))

        again = Command(running.data)
        try:
            again.wait_until(lambda: "Ctrl+C" in again.said)
            assert re.search(KEY_PATTERN, again.said) is None
            assert "The data of the last time is there." in again.said
            left = again.children()
        finally:
            again.kill()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left), "all to end")


def test_for_stops_it_after_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial of the cluster ends by itself."""
    cluster = Mock()
    monkeypatch.setattr("tools.cluster.__main__.Cluster", lambda *_: cluster)
    monkeypatch.setattr("tools.cluster.__main__._explain", Mock())
    monkeypatch.setattr(signal, "signal", Mock())  # pytest has its own
    done = CliRunner().invoke(main, ["--data", str(tmp_path / "data"), "--for", "10ms"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "Stopped; nothing runs any more.")
    assert [name for name, _, _ in cluster.mock_calls if name != "tend"] == ["start", "stop"]


def test_a_port_that_is_taken_is_told() -> None:
    """One line with the port and the remedy, exit code 1, and nothing is started."""
    ports = free_ports(5)
    port = ports[3]
    with machine.folder() as path, socket.create_server(("127.0.0.1", port)):
        done = subprocess.run(
            [sys.executable, "-m", "tools.cluster", "--data", path / "data", "--port", str(ports[0])],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 1
        assert f"Error: Port {port} is in use. Stop what uses it, or name five others" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (path / "data" / "postgres").exists()
