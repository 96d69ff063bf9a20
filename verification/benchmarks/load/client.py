"""HTTP/1.1 for load: requests as bytes, and sockets that skip the bodies of answers by their length."""

from __future__ import annotations

import contextlib
import select
import socket
from collections import deque
from collections.abc import Iterator, Sequence

_RECEIVE_BYTES = 262_144


def request_bytes(line: str, method: str, body: str = "", headers: Sequence[str] = ()) -> bytes:
    """A request from a line of a Load, with its own body if it has one."""
    target, key, own = [*line.split(" ", 2), "", ""][:3]
    body = own or body
    lines = [f"{method} {target} HTTP/1.1", "Host: bench", *headers]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join((*lines, "", body)).encode("ascii")


def whole_answers(received: bytes) -> tuple[list[int], bytes]:
    """The statuses of the answers that are there to their end, and the bytes of the next one."""
    statuses = []
    while (end := received.find(b"\r\n\r\n")) >= 0:
        head = received[:end].lower()
        at = head.find(b"\r\ncontent-length:")
        length = int(head[at + 17 :].split(b"\r", 1)[0]) if at >= 0 else 0
        if len(received) < end + 4 + length:
            break
        received = received[end + 4 + length :]
        statuses.append(int(head[9:12]))
    return statuses, received


class Sockets:
    """Connections to a server. One that it closes is opened anew, and asks again for what was not answered.

    `ready` can be read from when an answer has come; `asked_again` counts requests.
    """

    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self.ready = select.epoll()
        self.asked_again = 0
        self._numbers: dict[int, int] = {}  # of sockets, by file descriptor
        self._waiting: list[deque[bytes]] = [deque() for _ in range(connections)]
        self._received = [b""] * connections
        self._sockets = [self._connect(number) for number in range(connections)]

    def _connect(self, number: int) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ready.register(connection, select.EPOLLIN)
        self._numbers[connection.fileno()] = number
        self._received[number] = b""
        connection.sendall(b"".join(self._waiting[number]))
        return connection

    def send(self, number: int, request: bytes) -> None:
        self._waiting[number].append(request)
        with contextlib.suppress(ConnectionError):  # the next receive finds it closed
            self._sockets[number].sendall(request)

    def answers(self, seconds: float | None = None) -> Iterator[tuple[int, int]]:
        """Yield connection and status of answers that have come, once there is one or `seconds` are over."""
        for descriptor, _ in self.ready.poll(seconds):
            number, received = self._numbers[descriptor], b""
            with contextlib.suppress(ConnectionError):
                received = self._sockets[number].recv(_RECEIVE_BYTES)
            if not received:
                self.asked_again += len(self._waiting[number])
                self._sockets[number].close()
                self._sockets[number] = self._connect(number)
                continue
            statuses, self._received[number] = whole_answers(self._received[number] + received)
            for status in statuses:
                self._waiting[number].popleft()
                yield number, status

    def close(self) -> None:
        for connection in self._sockets:
            connection.close()
        self.ready.close()
