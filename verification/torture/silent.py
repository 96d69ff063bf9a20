"""Clients that send the head of a request and never its body, in a process of their own, until standard input
ends: python -m verification.torture.silent PORT
"""

from __future__ import annotations

import json
import resource
import select
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

CONNECTIONS = 10_000
_SPARE_DESCRIPTORS = 500
_BURST_SECONDS = 3.0  # from one crowd's beginning to the next one's
_ADDRESSES = 8  # each has its own 28,000 ports
_OPENED_AT_ONCE = 50
_HEAD = (
    b"POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n"
    b"Content-Type: application/json\r\nContent-Length: 29\r\n\r\n"
)


class Crowd:
    """`outcomes` counts statuses and whether the end was announced; `slowest`: seconds to the end of one."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.slowest = 0.0

    def __str__(self) -> str:
        return f"{self.outcomes.total():,} heads, {dict(self.outcomes)}"


@contextmanager
def silent_crowd(port: int) -> Iterator[Crowd]:
    """They are there for the length of the block; their outcomes are known at its end."""
    command = [sys.executable, "-m", "verification.torture.silent", str(port)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    crowd = Crowd()
    try:
        yield crowd
    finally:
        told = json.loads(child.communicate()[0])
        crowd.outcomes.update(told["outcomes"])
        crowd.slowest = told["slowest"]


class _Burst:
    """A burst of connections, each opened and answered once."""

    def __init__(self, port: int, crowd: Crowd) -> None:
        self._port = port
        self._crowd = crowd
        self._poll = select.epoll()
        self._open: dict[int, tuple[socket.socket, float, bytearray]] = {}

    def run(self, count: int) -> None:
        for number in range(count):
            self._connect(f"127.0.0.{2 + number % _ADDRESSES}")
            if number % _OPENED_AT_ONCE == 0:
                self._read(0)
        while self._open:
            self._read(1)

    def _connect(self, address: str) -> None:
        connection = socket.create_connection(("127.0.0.1", self._port), source_address=(address, 0))
        connection.sendall(_HEAD)
        self._open[connection.fileno()] = connection, time.monotonic(), bytearray()
        self._poll.register(connection, select.EPOLLIN)

    def _read(self, seconds: float) -> None:
        for descriptor, _ in self._poll.poll(seconds):
            connection, began, answer = self._open[descriptor]
            try:
                received = connection.recv(4_096)
            except ConnectionResetError:
                received = b""
            answer += received
            if received:
                continue
            announced = b"\r\nconnection: close\r\n" in answer.lower()
            outcome = f"{answer[9:12].decode()} {'announced' if announced else 'unannounced'}"
            self._crowd.outcomes[outcome] += 1
            self._crowd.slowest = max(self._crowd.slowest, time.monotonic() - began)
            del self._open[descriptor]
            connection.close()


def _main(port: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = Crowd()
    over: list[object] = []
    while not over:
        began = time.monotonic()
        _Burst(port, crowd).run(min(CONNECTIONS, most - _SPARE_DESCRIPTORS))
        left = max(0.0, began + _BURST_SECONDS - time.monotonic())
        over = select.select([sys.stdin], [], [], left)[0]
    sys.stdout.write(json.dumps({"outcomes": crowd.outcomes, "slowest": crowd.slowest}))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
