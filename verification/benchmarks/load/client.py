"""A small HTTP/1.1 client protocol for load: one connection, answers in order, bodies skipped by length."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast


def request_bytes(line: str, method: str, body: str = "", accept_encoding: str = "") -> bytes:
    """A request from a line of a Load, with its own body if it has one."""
    target, key, own = [*line.split(" ", 2), "", ""][:3]
    body = own or body
    head = f"{method} {target} HTTP/1.1\r\nHost: bench\r\n"
    if key:
        head += f"Authorization: Bearer {key}\r\n"
    if accept_encoding:
        head += f"Accept-Encoding: {accept_encoding}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return (head + "\r\n" + body).encode("ascii")


def whole_answers(received: bytes) -> tuple[list[int], bytes]:
    """The statuses of the answers that are there to their end, and what came of the next one."""
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


class Connection(asyncio.Protocol):
    """Calls `answered(mark, status)` for each answer, `mark` being what was given with its request."""

    def __init__(self, answered: Callable[[float, int], None]) -> None:
        self._answered = answered
        self._marks: deque[float] = deque()
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's does not inherit from it

    @property
    def waiting(self) -> int:
        return len(self._marks)

    def send(self, data: bytes, mark: float) -> None:
        self._marks.append(mark)
        assert self._transport is not None
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        statuses, self._buffer = whole_answers(self._buffer + data)
        for status in statuses:
            self._answered(self._marks.popleft(), status)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
