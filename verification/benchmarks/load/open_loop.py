"""Open-loop load: requests leave on schedule whether or not earlier ones were answered.

Latency counts from the moment that a request was due, so that a stall is not hidden by waiting clients.
`python -m verification.benchmarks.load.open_loop PORT SECONDS RATE LOAD`
"""

from __future__ import annotations

import contextlib
import gc
import select
import socket
import subprocess
import sys
import time
from collections import deque

import msgspec

from verification.benchmarks.load.client import request_bytes, whole_answers
from verification.benchmarks.load.closed import Load, pin
from verification.benchmarks.machine import ROOT

PERCENTILES = (50, 99, 99.9)
_STALL_SECONDS = 0.005
_LATE_SECONDS = 0.002
_NAP_SECONDS_MAX = 0.001
_AWAKE_SECONDS = 0.0001  # before a request is due
_PATIENCE_SECONDS = 60.0
_RECEIVE_BYTES = 262_144

Interval = tuple[float, float]


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds by percentile of `answers` requests at the rate that was reached.

    Intervals are in seconds of time.monotonic(): in `stalls` something was due and no connection got an
    answer for over 5 ms; in `late` this process did not run.
    """

    per_second: float
    answers: int
    percentiles: dict[str, float]
    stalls: list[Interval]
    late: list[Interval]


def open_loop(port: int, seconds: float, rate: float, load: Load) -> Latency:
    """Latency of the load's first request at a steady rate, from a process on the load's core.

    Raises subprocess.SubprocessError when answers are not what they should be, or late by a minute.
    """
    module = "verification.benchmarks.load.open_loop"
    words = (str(port), str(seconds), str(rate), msgspec.json.encode(load).decode())
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
        preexec_fn=pin,
        timeout=seconds + _PATIENCE_SECONDS,
    )
    return msgspec.json.decode(done.stdout, type=Latency)


class _Run:
    """Requests over all connections in turn. One that the server closes is opened anew, and asks again for
    what was not answered."""

    def __init__(self, port: int, load: Load) -> None:
        self._port = port
        self._expect = load.expect
        self._request = request_bytes(load.lines[0], load.method, load.body, load.accept_encoding)
        self._ready = select.epoll()
        self._sockets: list[socket.socket] = []
        self._numbers: dict[int, int] = {}  # of sockets, by file descriptor
        self._dues: list[deque[float]] = [deque() for _ in range(load.connections)]
        self._received = [b""] * load.connections
        self._sent = 0
        self._waits: list[float] = []
        self._last = 0.0  # when an answer came, or the first request after it was due
        self._stalls: list[Interval] = []
        self._late: list[Interval] = []
        for number in range(load.connections):
            self._sockets.append(self._connect(number))

    def _connect(self, number: int) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ready.register(connection, select.EPOLLIN)
        self._numbers[connection.fileno()] = number
        self._received[number] = b""
        connection.sendall(self._request * len(self._dues[number]))
        return connection

    def run(self, rate: float, total: int) -> Latency:
        gc.disable()  # its pauses would be the server's
        began = awake = time.monotonic()
        while len(self._waits) < total:
            now = time.monotonic()
            if now - awake > _LATE_SECONDS:
                self._late.append((awake, now))
            due_by_now = min(total, int((now - began) * rate) + 1)
            while self._sent < due_by_now:
                self._ask(began + self._sent / rate)
            next_due = began + self._sent / rate if self._sent < total else now + 1
            awake = max(now, min(next_due - _AWAKE_SECONDS, now + _NAP_SECONDS_MAX))
            # epoll itself rounds up to whole milliseconds
            select.select([self._ready], [], [], max(0.0, awake - time.monotonic()))
            for descriptor, _ in self._ready.poll(0):
                self._receive(self._numbers[descriptor])
        spent = time.monotonic() - began
        self._waits.sort()
        places = {f"p{share:g}": self._waits[int(total * share / 100)] * 1_000 for share in PERCENTILES}
        return Latency(total / spent, total, places, self._stalls, self._late)

    def _ask(self, due: float) -> None:
        number = self._sent % len(self._sockets)
        if self._sent == len(self._waits):
            self._last = max(self._last, due)
        self._sent += 1
        self._dues[number].append(due)
        with contextlib.suppress(ConnectionError):  # the next receive finds it closed
            self._sockets[number].sendall(self._request)

    def _receive(self, number: int) -> None:
        received = b""
        with contextlib.suppress(ConnectionError):
            received = self._sockets[number].recv(_RECEIVE_BYTES)
        if not received:
            self._sockets[number].close()
            self._sockets[number] = self._connect(number)
            return
        statuses, self._received[number] = whole_answers(self._received[number] + received)
        now = time.monotonic()
        for status in statuses:
            if status != self._expect:
                sys.exit(f"an answer is {status}, not {self._expect}")
            if now - self._last > _STALL_SECONDS:
                self._stalls.append((self._last, now))
            self._last = now
            self._waits.append(now - self._dues[number].popleft())


if __name__ == "__main__":
    port_text, seconds_text, rate_text, load_text = sys.argv[1:]
    turn = _Run(int(port_text), msgspec.json.decode(load_text, type=Load))
    taken = turn.run(float(rate_text), int(float(rate_text) * float(seconds_text)))
    print(msgspec.json.encode(taken).decode())
