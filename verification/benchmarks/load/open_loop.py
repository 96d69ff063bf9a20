"""Open-loop load: requests leave on schedule whether or not earlier ones were answered.

Latency counts from the moment that a request was due, so that a stall is not hidden by waiting clients.
`python -m verification.benchmarks.load.open_loop PORT SECONDS RATE LOAD BESIDE`
"""

from __future__ import annotations

import gc
import select
import subprocess
import sys
import time
from collections import deque

import msgspec

from verification.benchmarks.load.client import Sockets, request_bytes
from verification.benchmarks.load.closed import Load, pin
from verification.benchmarks.machine import ROOT

PERCENTILES = (50, 99, 99.9)
_STALL_SECONDS = 0.005
_LATE_SECONDS = 0.002
_NAP_SECONDS_MAX = 0.001
_AWAKE_SECONDS = 0.0001  # before a request is due
_WAIT_SECONDS = 60.0

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


def open_loop(port: int, seconds: float, rate: float, load: Load, beside: Load | None = None) -> Latency:
    """Latency of the load's first request at a steady rate, from a process on the load's core. The
    connections of `beside` repeat its first request meanwhile, each when it is answered.

    Raises subprocess.SubprocessError when answers are not what they should be, or late by a minute.
    """
    module = "verification.benchmarks.load.open_loop"
    loads = (msgspec.json.encode(each).decode() for each in (load, beside))
    words = (str(port), str(seconds), str(rate), *loads)
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
        preexec_fn=pin,
        timeout=seconds + _WAIT_SECONDS,
    )
    return msgspec.json.decode(done.stdout, type=Latency)


class _Beside:
    """What goes on beside a run: requests without pause."""

    def __init__(self, port: int, load: Load) -> None:
        self._load = load
        self._request = request_bytes(load.lines[0], load.method, load.body, load.headers)
        self.sockets = Sockets(port, load.connections)
        for number in range(load.connections):
            self.sockets.send(number, self._request)

    def go_on(self) -> None:
        for number, status in self.sockets.answers(0):
            _expect(status, self._load)
            self.sockets.send(number, self._request)


class _Run:
    """Requests over all connections in turn."""

    def __init__(self, port: int, load: Load, beside: Load | None) -> None:
        self._load = load
        self._request = request_bytes(load.lines[0], load.method, load.body, load.headers)
        self._sockets = Sockets(port, load.connections)
        self._beside = [_Beside(port, beside)] if beside else []
        self._ready = [self._sockets.ready, *(each.sockets.ready for each in self._beside)]
        self._dues: list[deque[float]] = [deque() for _ in range(load.connections)]
        self._sent = 0
        self._waits: list[float] = []
        self._last = 0.0  # when an answer came, or the first request after it was due
        self._stalls: list[Interval] = []
        self._late: list[Interval] = []

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
            select.select(self._ready, [], [], max(0.0, awake - time.monotonic()))
            self._receive()
            for each in self._beside:
                each.go_on()
        spent = time.monotonic() - began
        self._waits.sort()
        places = {f"p{share:g}": self._waits[int(total * share / 100)] * 1_000 for share in PERCENTILES}
        return Latency(total / spent, total, places, self._stalls, self._late)

    def _ask(self, due: float) -> None:
        number = self._sent % self._load.connections
        if self._sent == len(self._waits):
            self._last = max(self._last, due)
        self._sent += 1
        self._dues[number].append(due)
        self._sockets.send(number, self._request)

    def _receive(self) -> None:
        for number, status in self._sockets.answers(0):
            _expect(status, self._load)
            now = time.monotonic()
            if now - self._last > _STALL_SECONDS:
                self._stalls.append((self._last, now))
            self._last = now
            self._waits.append(now - self._dues[number].popleft())


def _expect(status: int, load: Load) -> None:
    if status != load.expect:
        sys.exit(f"an answer to {load.lines[0].split()[0]} is {status}, not {load.expect}")


if __name__ == "__main__":
    port_text, seconds_text, rate_text, *loads = sys.argv[1:]
    asked, asked_beside = (msgspec.json.decode(each, type=Load | None) for each in loads)
    turn = _Run(int(port_text), asked, asked_beside)
    taken = turn.run(float(rate_text), int(float(rate_text) * float(seconds_text)))
    print(msgspec.json.encode(taken).decode())
