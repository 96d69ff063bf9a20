"""A client that writes bytes to a socket as they are given, and reads what comes back."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Self

_PATIENCE_SECONDS = 20.0


class RawAnswer:
    """One answer, perhaps a 1xx."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers: Mapping[str, str] = dict(headers)
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class RawConnection:
    """A connection to a server of this machine."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), _PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def send(self, *parts: bytes) -> None:
        """Write each part by itself."""
        for part in parts:
            self.socket.sendall(part)

    def end(self) -> None:
        """Say that nothing more will come, and go on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Break the connection off: the server gets a reset instead of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def read(self, method: str = "GET") -> RawAnswer:
        """The next answer, perhaps a 1xx. Raises ConnectionError when the server closes instead."""
        while b"\r\n\r\n" not in self._buffer:
            if not self._receive():
                raise ConnectionError("The server closed the connection without an answer.")
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = [line.split(":", 1) for line in lines]
        headers = [(name.lower(), value.strip()) for name, value in pairs]
        status = int(first.split(" ")[1])
        length = 0 if method == "HEAD" or status < 200 else int(dict(headers).get("content-length", 0))
        while len(self._buffer) < length:
            if not self._receive():
                break
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return RawAnswer(status, headers, body)

    def is_closed_by_server(self) -> bool:
        """Wait for the end of the connection; False when there is more to read instead."""
        return not self._buffer and not self._receive()

    def _receive(self) -> bool:
        try:
            received = self.socket.recv(65_536)
        except ConnectionResetError:
            return False
        self._buffer += received
        return bool(received)


def exchange(port: int, *parts: bytes, end: bool = False) -> RawAnswer:
    """One request in one or more parts on a connection of its own, and its final answer."""
    with RawConnection(port) as connection:
        connection.send(*parts)
        if end:
            connection.end()
        while (answer := connection.read()).status < 200:
            pass
        return answer
