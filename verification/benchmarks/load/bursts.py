"""Short bursts of requests, for servers that are compared by the processor time that each takes.

A shared machine is 10 % slower from one second to the next. Bursts of 30 ms that alternate meet the same
machine, and a processor's clock leaves out what others took of it. One after another they are the bundled
generator: `python -m verification.benchmarks.load.bursts PORT SECONDS`, with a Load on standard input.
"""

from __future__ import annotations

import sys
import time
from itertools import cycle

import msgspec

from verification.benchmarks.load.client import Sockets, request_bytes
from verification.benchmarks.load.closed import Load, Outcome

REQUESTS = 512


class Bursts:
    """A load's connections to one server; each sends its next request when the last is answered."""

    def __init__(self, load: Load, port: int) -> None:
        self._load = load
        self._requests = cycle(
            [request_bytes(line, load.method, load.body, load.headers) for line in load.lines]
        )
        self._sockets = Sockets(port, load.connections)
        self.close = self._sockets.close

    def one(self) -> int:
        """REQUESTS requests; how many answers had another status than expected, or did not come at first."""
        asked_again = self._sockets.asked_again
        for number in range(self._load.connections):
            self._sockets.send(number, next(self._requests))
        sent, answered, unexpected = self._load.connections, 0, 0
        while answered < REQUESTS:
            for number, status in self._sockets.answers():
                answered += 1
                unexpected += status != self._load.expect
                if sent < REQUESTS:
                    sent += 1
                    self._sockets.send(number, next(self._requests))
        return unexpected + self._sockets.asked_again - asked_again


def _generate(port: int, seconds: float, load: Load) -> Outcome:
    bursts, taken = Bursts(load, port), 0.0
    unexpected: list[int] = []
    began = time.perf_counter()
    while taken < seconds:
        unexpected.append(bursts.one())
        taken = time.perf_counter() - began
    return Outcome(REQUESTS * len(unexpected) / taken, sum(unexpected), taken)


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Load)
    print(msgspec.json.encode(_generate(int(sys.argv[1]), float(sys.argv[2]), asked)).decode())
