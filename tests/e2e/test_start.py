"""How the real server starts: the first time, again, where it may not, and beside another one."""

from __future__ import annotations

import os
import re
import resource
import shlex
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from petstore.core.keys import KEY_PATTERN, is_wellformed
from tests.support.server import Server, issue_key, running_server
from tests.support.terminal import terminal
from tests.support.waiting import wait_for
from tools.servers.petstore import run
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-start")]


@contextmanager
def closing_server(server: Server) -> Iterator[Server]:
    """A server for the length of a block, without the key that `running_server` makes."""
    try:
        server.start()
        yield server
    finally:
        server.terminate()
        server.kill()


@contextmanager
def on_terminal(folder: Path, **settings: Any) -> Iterator[Server]:
    log = folder / f"terminal-{len(list(folder.glob('terminal-*')))}.log"
    with (
        terminal(log) as stderr,
        closing_server(Server(folder, log=log, how={"stderr": stderr}, **settings)) as server,
    ):
        yield server


def first_key_of(server: Server) -> str:
    """The key that a terminal shows; what it shows arrives a little later."""
    wait_for(lambda: KEY_PATTERN.search(server.log) is not None, "the key")
    found = KEY_PATTERN.search(server.log)
    assert found is not None
    return found[0]


class TestFirstStart:
    """An empty database on a loopback address."""

    @pytest.mark.measured
    def test_it_prints_a_key_once_and_the_second_start_prints_none(self, tmp_path: Path) -> None:
        """The first start on a terminal prints a key, which works after a restart, whose output has none.
        tests/docs/test_quickstart.py pastes the line to try."""
        with on_terminal(tmp_path) as first:
            key = first_key_of(first)
            wait_for(lambda: first.log.count(key) == 2, "the key by itself, and in the line to try")
            assert is_wellformed(key)
            assert key.startswith("pets_live_")
        with on_terminal(tmp_path) as second:
            wait_for(lambda: "Pet Store Service at" in second.log, "the line of the start")
            assert "pets_" not in second.log
            assert "First start" not in second.log
            answer = second.request("GET", "/v1/pets", key=key)
            assert (answer.status, answer.headers["x-ratelimit-limit"]) == (200, "60")

    def test_a_log_gets_the_commands_and_no_secret(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file, a pipe, a container's log: others read it. Its line names commands that show both. Nothing
        here needs PostgreSQL's driver or Valkey's, which `make setup` does not install."""
        drivers = tmp_path / "drivers"
        drivers.mkdir()
        for name in ("asyncpg", "libvalkey"):
            (drivers / f"{name}.py").write_text("raise ImportError('not installed')")
        places = (str(drivers), os.environ.get("PYTHONPATH"))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
        server = Server(tmp_path, log_format="text")
        with closing_server(server):
            (line,) = [line for line in server.log.splitlines() if "No account yet" in line]
            assert "pets_" not in server.log
            assert "console/link" not in server.log
            commands = re.findall(r"petstore ((?:accounts|keys|people) [a-zA-Z -]*?)(?:,|;|$)", line)
            said = [run(*shlex.split(words), settings=server.settings) for words in commands]
            assert [done.returncode for done in said] == [0, 0, 0]
            key = said[1].stdout.strip()
            assert server.request("GET", "/v1/pets", key=key).status == 200
            assert "/console/link/" in said[2].stdout


@pytest.fixture
def many_descriptors() -> Iterator[list[int]]:
    """Leave 1,100 descriptors open, as a careless parent leaves them to its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (-1, resource.RLIM_INFINITY) and hard < 2_000:
        pytest.skip("a process may not have so many descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        yield opened
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_that_were_inherited(tmp_path: Path, many_descriptors: list[int]) -> None:
    """The service's own then have numbers above 1,023: it starts, logs, replaces its worker and stops.
    However many clients connect, some are left for files, and nobody is accepted whom there is none for."""
    few = ["sh", "-c", 'ulimit -n 1500 && exec "$@"', "sh"]
    with running_server(tmp_path, how={"pass_fds": many_descriptors}, prefix=few) as server:
        first = server.workers()
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.workers() not in ([], first), "the new worker")
        assert server.request("GET", "/v1/pets").status == 200
        open_now = Path(f"/proc/{server.workers()[0]}/fd")
        before = len(list(open_now.iterdir()))
        seen = [before]

        def is_settled() -> bool:
            seen.append(len(list(open_now.iterdir())))
            return seen[-1] > before and seen[-20:] == [seen[-1]] * 20

        with ExitStack() as held:
            for _ in range(600):
                client = held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                client.sendall(b"GET / HTTP/1.1\r\n")
            wait_for(is_settled, "no more to be accepted")
        assert seen[-1] < 1_450
        assert server.terminate() == 0


def test_without_standard_error(tmp_path: Path) -> None:
    """A service that is started with its standard streams closed serves, replaces its worker and stops."""
    key = issue_key(tmp_path / "petstore.db")
    with running_server(tmp_path, prefix=["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh"]) as server:
        before = server.workers()
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.workers() not in ([], before), "the new worker")
        server.wait_until_ready()
        assert server.request("GET", "/v1/pets", key=key).status == 200
        assert server.terminate() == 0


def test_a_database_that_is_none(tmp_path: Path) -> None:
    """One line and exit 78, since to start again mends nothing; the file is left as it is."""
    database = tmp_path / "petstore.db"
    database.write_text("not a database, " * 100)
    settings = {"database_url": f"sqlite:///{database}", "port": str(free_port())}
    ended = run("serve", settings=settings, cwd=tmp_path)
    assert ended.returncode == 78
    assert ended.stderr == (
        "petstore: The store failed: the file is not a database."
        " Check PETSTORE_DATABASE_URL, or stop the server and restore a backup.\n"
    )
    assert database.read_text() == "not a database, " * 100
