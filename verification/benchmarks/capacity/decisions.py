"""Measured, not simulated: what a decision costs one core of a real Valkey, and an account's memory.

The processor time is the server's own count of it, so a slow client or a busy neighbour does not change it.
"""

from __future__ import annotations

import socket
from typing import Any

import libvalkey
import msgspec

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.limiter.valkey.calls import NOT_CACHED, Calls
from petstore.limiter.valkey.scripts import CATALOGUE, CATALOGUE_WRITERS, EPOCH, Scripts, command
from tests.support.valkey import ValkeyServer

_EPOCH = b"%d" % 10**15  # as long as a real one
_SEEDS = (_EPOCH, b"-60000 0 0 0", b"-")


class Cost(msgspec.Struct):
    """Processor microseconds of Valkey for each decision."""

    situation: str
    together: int
    microseconds: float


class _Wire:
    """Several connections, each with some calls under way at once."""

    def __init__(self, path: str, connections: int) -> None:
        self._sockets = []
        for _ in range(connections):
            opened = socket.socket(socket.AF_UNIX)
            opened.connect(path)
            self._sockets.append((opened, libvalkey.Reader()))

    def ask(self, *calls: bytes) -> list[object]:
        """All of them, split over the connections; the replies of the last connection."""
        replies: list[object] = []
        share = -(-len(calls) // len(self._sockets))
        parts = [calls[start : start + share] for start in range(0, len(calls), share)]
        for (opened, _), part in zip(self._sockets, parts, strict=False):
            opened.sendall(b"".join(part))
        for (opened, reader), part in zip(self._sockets, parts, strict=False):
            replies = []
            while len(replies) < len(part):
                reply = reader.gets()
                if reply is False:
                    reader.feed(opened.recv(262_144))
                    continue
                if isinstance(reply, libvalkey.ReplyError):
                    raise reply
                replies.append(reply)
        return replies

    def info(self, name: str) -> float:
        """A number that the server tells about itself."""
        (text,) = self.ask(command(b"INFO", b"everything"))
        assert isinstance(text, bytes)
        lines = dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
        return float(lines[name])

    def processor_seconds(self) -> float:
        return self.info("used_cpu_user_main_thread") + self.info("used_cpu_sys_main_thread")

    def version(self) -> str:
        (text,) = self.ask(command(b"INFO", b"server"))
        assert isinstance(text, bytes)
        return text.decode().partition("valkey_version:")[2].split()[0]


def _calls(scripts: Scripts, accounts: int, count: int, limit: int) -> list[bytes]:
    calls = Calls(scripts.take, BanPolicy())
    return [
        calls.take(Caller(n % accounts + 1, n % accounts + 1, (limit, limit)), NOT_CACHED, _SEEDS)
        for n in range(count)
    ]


def _marks(scripts: Scripts, count: int) -> list[bytes]:
    head = (b"EVALSHA", scripts.publish.digest, b"2", CATALOGUE, CATALOGUE_WRITERS)
    return [
        command(*head, what, b"writer-%d" % number, b"10000")
        for number in range(count // 2)
        for what in (b"begin", b"complete")
    ]


def _cost(wires: dict[int, _Wire], situation: str, together: int, calls: list[bytes]) -> Cost:
    wire = wires[min(together, 8)]
    for start in range(0, len(calls) // 10, together):
        wire.ask(*calls[start : start + together])
    began, done = wire.processor_seconds(), 0
    for start in range(0, len(calls), together):
        done += len(calls[start : start + together])
        wire.ask(*calls[start : start + together])
    return Cost(situation, together, (wire.processor_seconds() - began) * 1e6 / done)


def measure(decisions: int, accounts: int) -> dict[str, Any]:
    """Admissions of one account and of many, refusals, changes; one at a time, and many at once."""
    server = ValkeyServer().start()
    try:
        scripts = Scripts()
        wires = {count: _Wire(str(server.socket), count) for count in (1, 8)}
        wire = wires[1]
        wire.ask(scripts.take.load)
        wire.ask(scripts.publish.load)
        wire.ask(command(b"SET", EPOCH, _EPOCH))
        empty = wire.info("used_memory")
        first = _calls(scripts, accounts, accounts, 10**9)
        for start in range(0, accounts, 1_000):
            wire.ask(*first[start : start + 1_000])
        each = (wire.info("used_memory") - empty) / accounts
        one = _calls(scripts, 1, decisions, 10**9)
        many = _calls(scripts, accounts, decisions, 10**9)
        costs = [
            _cost(wires, "one account, admitted", 1, one[: decisions // 4]),
            _cost(wires, "one account, admitted", 64, one),
            _cost(wires, f"{accounts:,} accounts, admitted", 64, many),
            _cost(wires, "one account, refused or banned", 64, _calls(scripts, 1, decisions, 1)),
            _cost(wires, "a change: mark and bump, each", 64, _marks(scripts, decisions)),
        ]
        return {"server": wire.version(), "bytes of an account with one key": each, "costs": costs}
    finally:
        server.drop()
