"""The simulated network: how long a message takes, and connections that keep their order."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from verification.simulation.virtual import VirtualLoop

if TYPE_CHECKING:
    from verification.simulation.valkey import SimulatedValkey

# The event loop keeps no order among events of the same time.
_APART = 1e-8


class Delays:
    """One-way times: half of a round trip with jitter, and now and then a stall."""

    def __init__(
        self, rng: random.Random, round_trip_seconds: float, stall_share: float, stall_seconds: float
    ) -> None:
        self._random = rng.random
        self._exponential = rng.expovariate
        self._half = round_trip_seconds / 2
        self._stall_share = stall_share
        self._stall_seconds = stall_seconds

    def one_way(self) -> float:
        """Never less than three quarters of the usual half."""
        delay = self._half * (0.75 + self._exponential(4.0))
        if self._random() < self._stall_share:
            delay += self._random() * self._stall_seconds
        return delay


class Pipe(asyncio.Transport):
    """A connection: bytes arrive late, in order, or not at all."""

    def __init__(
        self,
        loop: VirtualLoop,
        delays: Delays,
        valkey: SimulatedValkey,
        protocol: asyncio.Protocol,
        host: str,
    ) -> None:
        super().__init__()
        self._loop = loop
        self._delays = delays
        self._valkey = valkey
        self._protocol = protocol
        self._there = self._back = 0.0
        self.host = host
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._there = max(self._there + _APART, self._loop.time() + self._delays.one_way())
        self._loop.call_at(self._there, self._valkey.arrived, self, bytes(data))

    def answer(self, data: bytes, when: float) -> None:
        """The server sends this then."""
        self._back = max(self._back + _APART, when + self._delays.one_way())
        self._loop.call_at(self._back, self._deliver, data)

    def _deliver(self, data: bytes) -> None:
        if not self.closed and self._valkey.reaches(self.host):
            self._protocol.data_received(data)

    def abort(self) -> None:
        """End the connection, also when the server is gone, and the kernel says so."""
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def close(self) -> None:
        self.abort()
