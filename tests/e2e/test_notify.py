"""What systemd is told by a service of Type=notify-reload, on a real datagram socket."""

from __future__ import annotations

import os
import re
import secrets
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-notify")]

_PATIENCE_SECONDS = 20.0


class Manager:
    """The service manager's end: what was told, a datagram at a time."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.settimeout(_PATIENCE_SECONDS)

    def expect(self, *lines: str) -> str:
        """The next datagram with all these lines; those before it are kept in `told`."""
        while True:
            self.told.append(self._socket.recv(4_096).decode())
            if set(lines) <= set(self.told[-1].splitlines()):
                return self.told[-1]

    def waiting(self) -> list[str]:
        """What was told by now and not yet taken."""
        found = []
        while select.select([self._socket], [], [], 0)[0]:
            found.append(self._socket.recv(4_096).decode())
        return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    """Listen where systemd may: on a path, or on an abstract socket."""
    is_abstract = getattr(request, "param", None) == "abstract"
    made = Manager(f"@petstore-{secrets.token_hex(8)}" if is_abstract else str(tmp_path / "notify"))
    yield made
    made.close()


@contextmanager
def started(folder: Path, manager: Manager, **surroundings: str) -> Iterator[Server]:
    """`petstore serve` as systemd starts it, killed at the end of the block."""
    config = folder / "settings.toml"
    config.touch()
    variables = {"NOTIFY_SOCKET": manager.address, **surroundings}
    server = Server(folder, config=str(config), worker_timeout="3s", variables=variables)
    server.launch()
    try:
        yield server
    finally:
        server.kill()


def test_the_manager_is_told_of_each_step_of_a_life(tmp_path: Path, manager: Manager) -> None:
    """Ready when the worker serves; reloading, and ready again, also when that was refused; stop."""
    with started(tmp_path, manager) as server:
        manager.expect("READY=1", "STATUS=1 of 1 workers serve.")
        assert server.request("GET", "/healthz").status == 200
        (first,) = server.workers()
        for refused in (False, True):
            (tmp_path / "settings.toml").write_text("prot = 1\n" if refused else "")
            before = time.clock_gettime(time.CLOCK_MONOTONIC)
            server.process.send_signal(signal.SIGHUP)
            told = manager.expect("RELOADING=1")
            microseconds = re.search(r"^MONOTONIC_USEC=(\d+)$", told, re.M)
            assert microseconds is not None
            after = time.clock_gettime(time.CLOCK_MONOTONIC)
            assert before * 1_000_000 <= int(microseconds[1]) <= after * 1_000_000 + 1
            manager.expect("READY=1", "STATUS=1 of 1 workers serve.")
        assert server.workers() != [first]
        assert server.request("GET", "/healthz").status == 200
        assert server.terminate() == 0
        manager.expect("STOPPING=1")
        assert not any("workers" in datagram for datagram in manager.waiting())
        assert not any("WATCHDOG" in datagram for datagram in manager.told)


def is_stopped(pid: int) -> bool:
    """Whether none of its threads runs (Linux)."""
    states = [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


@pytest.mark.parametrize("manager", ["abstract"], indirect=True)
def test_the_watchdog_is_told_while_a_worker_serves(tmp_path: Path, manager: Manager) -> None:
    """A sign twice in the time of the watchdog; none from a process that is not meant. While the only worker
    hangs for longer than PETSTORE_WORKER_TIMEOUT there is none; they begin again with the next worker."""
    with started(tmp_path, manager, WATCHDOG_USEC="600000") as server:
        manager.expect("READY=1")
        moments = []
        for _ in range(4):
            manager.expect("WATCHDOG=1")
            moments.append(time.monotonic())
        assert 0.3 < moments[-1] - moments[0] < 8  # 0.9 s, less or more on a busy machine
        server.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: is_stopped(server.pid), "the stop")  # until then it may tell once more
        manager.waiting()
        assert not select.select([manager._socket], [], [], 0.7)[0]
        server.process.send_signal(signal.SIGCONT)
        manager.expect("WATCHDOG=1")
        (worker,) = server.workers()
        os.kill(worker, signal.SIGSTOP)
        manager.expect("STATUS=0 of 1 workers serve.")
        manager.expect("STATUS=1 of 1 workers serve.")
        manager.expect("WATCHDOG=1")
        assert server.workers() not in ([], [worker])


def test_a_manager_that_is_gone_disturbs_nobody(tmp_path: Path, manager: Manager) -> None:
    """Nobody at the socket: the service starts, serves and stops."""
    manager.close()
    with started(tmp_path, manager, WATCHDOG_USEC="200000") as server:
        server.wait_until_ready()
        assert server.terminate() == 0
