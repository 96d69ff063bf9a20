"""Whether a client takes what was sent to it, and the end of its connection if it does not.

The kernel's own timeout, TCP_USER_TIMEOUT, also ends clients that read slowly through a small window:
docs/decisions/0018-watch-over-unread-answers.md.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios

# struct tcp_info, linux/tcp.h: tcpi_bytes_acked, an unsigned 64-bit number.
_ACKNOWLEDGED = slice(120, 128)


class AnswerProgress:
    """How the client of one connection takes the answers on it."""

    __slots__ = ("_acknowledged", "_since", "_waiting")

    def __init__(self) -> None:
        self._acknowledged = b""
        self._since = 0.0
        self._waiting = 0  # bytes that the kernel has no room for

    def has_stalled(self, transport: asyncio.Transport, waiting: int, now: float, seconds: float) -> bool:
        """Whether `waiting` bytes are left of which the client has acknowledged none for `seconds`."""
        if not waiting:
            self._waiting = 0
            return False
        acknowledged = _acknowledged(transport)
        # Some sandboxes do not count acknowledged bytes: there a shorter queue is progress. A longer one is
        # not, since each pipelined request adds an answer.
        if acknowledged != self._acknowledged or waiting < self._waiting or not self._waiting:
            self._acknowledged, self._since = acknowledged, now
        self._waiting = waiting
        return now - self._since >= seconds


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes that the client has not acknowledged: here, and on Linux in the kernel's queue too."""
    waiting = transport.get_write_buffer_size()
    if sys.platform != "linux":
        return waiting
    connection: socket.socket = transport.get_extra_info("socket")
    try:
        return waiting + int.from_bytes(
            fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder
        )
    except (OSError, ValueError):  # it has just been closed
        return waiting


def reset(transport: asyncio.Transport) -> None:
    """End a connection at once. After a mere close the kernel would keep what the client does not take."""
    if not transport.is_closing():
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _acknowledged(transport: asyncio.Transport) -> bytes:
    if sys.platform != "linux":
        return b""
    connection: socket.socket = transport.get_extra_info("socket")
    try:
        information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.stop)
    except OSError:
        return b""
    return information[_ACKNOWLEDGED]
