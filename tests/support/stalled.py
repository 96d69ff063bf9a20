"""Clients that ask for more than they read: what a server does about an answer that is not taken."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

DOCUMENT = "/openapi.json"
_LISTENING, _NO_INODE = "0A", "0"
_RECEIVE_BUFFER = 4_096
_SEGMENT = 536  # with large ones the server's system takes a whole answer into its send buffer


def held_connections(port: int) -> set[int]:
    """The clients' ports of all connections to a server's port that a process still has open (Linux).

    What a process has closed may be with the kernel for minutes, until the client takes the rest.
    """
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ours = [row for row in rows if _port(row[1]) == port and row[3] != _LISTENING and row[9] != _NO_INODE]
    return {_port(row[2]) for row in ours}


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)


class StalledClient:
    """A connection with a small receive buffer and many requests ahead, of whose answers nothing is read."""

    def __init__(self, port: int, target: str = DOCUMENT, *, requests: int = 20) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        self.port: int = self.socket.getsockname()[1]
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * requests)

    def is_answered(self) -> bool:
        """Whether the beginning of an answer has come; it stays where it is."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def take(self, length: int) -> int:
        """Read a little after all: how much there was; 0 at the end. Raises ConnectionResetError."""
        return len(self.socket.recv(length))

    def close(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@contextlib.contextmanager
def stalled_clients(port: int, count: int = 1) -> Iterator[list[StalledClient]]:
    """Some of them for the length of a block."""
    clients = [StalledClient(port) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()
