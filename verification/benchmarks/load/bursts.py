"""Short bursts of requests, for servers that are compared by the processor time that each takes.

A shared machine is 10 % slower from one second to the next. Bursts of 30 ms that alternate meet the same
machine, and a processor's clock leaves out what others took of it.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from itertools import cycle

from verification.benchmarks.load.client import request_bytes
from verification.benchmarks.load.closed import Load

REQUESTS = 512
_RECEIVE_BYTES = 262_144


class Bursts:
    """A load's connections to one server; each sends its next request when the last is answered."""

    def __init__(self, load: Load, port: int) -> None:
        self._load = load
        requests = [request_bytes(line, load.method, load.body, load.accept_encoding) for line in load.lines]
        self._requests: Iterator[bytes] = cycle(requests)
        self._ready = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        for _ in range(load.connections):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[connection.fileno()] = connection
            self._ready.register(connection, select.EPOLLIN)

    def one(self) -> None:
        """REQUESTS requests. Raises RuntimeError at an answer with another status than expected."""
        left = REQUESTS
        begun = dict.fromkeys(self._sockets, b"")
        for connection in self._sockets.values():
            connection.sendall(next(self._requests))
        to_send = REQUESTS - len(self._sockets)
        while left:
            for number, _ in self._ready.poll():
                received = begun[number] + self._sockets[number].recv(_RECEIVE_BYTES)
                if not self._is_whole(received):
                    begun[number] = received
                    continue
                begun[number] = b""
                left -= 1
                if to_send:
                    to_send -= 1
                    self._sockets[number].sendall(next(self._requests))

    def _is_whole(self, answer: bytes) -> bool:
        head, end, body = answer.partition(b"\r\n\r\n")
        if not end and answer:
            return False
        if not head.startswith(b"HTTP/1.1 %d" % self._load.expect):
            raise RuntimeError(f"{self._load.lines[0]}: not {self._load.expect} but {head!r}")
        length = head[head.index(b"ontent-length: ") + 15 :].partition(b"\r")[0]
        return len(body) == int(length)

    def close(self) -> None:
        for connection in self._sockets.values():
            connection.close()
        self._ready.close()
