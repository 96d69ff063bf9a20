"""A real Valkey for tests: one server for each test process, emptied for each test.

TEST_VALKEY_URL names a server that is there already (each test process empties a database of
its own). Else one is started from the programs of the system, or from the one that the test kit brings. Where
there is none, tests skip, and fail when CI is set.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
from functools import cache
from pathlib import Path
from typing import Any, Self

import libvalkey

from petstore.limiter.valkey.observer import NoObserver
from petstore.limiter.valkey.scripts import TAG, Scripts, command, text_of
from petstore.limiter.valkey.url import ValkeyUrl, parse_url
from tests.support.clock import ManualClock
from tests.support.machine import absent, need, short_folder
from tools.servers import Unusable, find
from tools.servers.valkey import Valkey

URL_VARIABLE = "TEST_VALKEY_URL"
PATIENT = 20.0  # seconds that a test waits for an answer in which it does not want an outage
CLOCK = TAG + b"clock"
SERVER_TIME = "local time = redis.call('TIME')\n"
STEERED_TIME = "local time = redis.call('HMGET', '{petstore}:clock', 'seconds', 'microseconds')\n"


def find_valkey() -> Path:
    """`valkey-server`."""
    need("Valkey")
    try:
        return find.valkey()
    except Unusable:
        absent("Valkey")


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


class ValkeyServer(Valkey):
    """A server of the test's own, which it may pause, kill and start again. It keeps nothing on the disk.

    At the end of a `with` block it is dropped.
    """

    def __init__(self, *settings: str) -> None:
        folder = short_folder("vk")
        self.socket = folder / "s"
        options = ("--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no")
        super().__init__(find_valkey(), folder, folder / "log", self.socket, *options, *settings)
        self.url = f"unix://{self.socket}"
        self.client = Client(self.url)

    def start(self) -> Self:
        """Start, and wait until it answers."""
        self.socket.unlink(missing_ok=True)
        return super().start()

    def client_with(self, password: str) -> Client:
        """A client that knows a password."""
        return Client(f"unix://:{password}@{self.socket}")

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP makes it hang, SIGCONT go on."""
        self.child.process.send_signal(number)

    def kill(self) -> None:
        """Kill the server, as a crash would; everything that it held is gone."""
        self.child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def drop(self) -> None:
        """End it for good."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def shared_url() -> str:
    """The address of this test process's server."""
    need("Valkey")
    given = os.environ.get(URL_VARIABLE)
    if given:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        return f"{given.rstrip('/')}/{worker}"
    server = ValkeyServer().start()
    atexit.register(server.drop)
    return server.url


def emptied_url() -> str:
    """The address of a Valkey with nothing in it."""
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
        self._sent_ms = -1

    def send(self) -> None:
        """Send the time before a call, if it has moved (or the server was emptied)."""
        now_ms = self._clock.now_ms()
        if now_ms != self._sent_ms:
            self._client("HSET", CLOCK, "seconds", now_ms // 1_000, "microseconds", now_ms % 1_000 * 1_000)
            self._sent_ms = now_ms

    def forget(self) -> None:
        """The server was emptied."""
        self._sent_ms = -1
