"""Resets connections whose client reads nothing of its response (Linux).

The HTTP server has no write timeout. The kernel's, TCP_USER_TIMEOUT, also ends clients that read slowly
through a small window: docs/decisions/0018-watch-over-unread-answers.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import socket
import struct
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

_FIRST_DESCRIPTOR = 3
_DESCRIPTORS_AT_ONCE = 512  # checked in about a millisecond, before requests are served again
_CHECKS_PER_TIMEOUT = 6
_MAX_PAUSE_SECONDS = 5.0
# struct tcp_info, linux/tcp.h: tcpi_bytes_acked, an unsigned 64-bit number.
_ACKNOWLEDGED = slice(120, 128)
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)

_log = structlog.get_logger("petstore")


class _Unread(msgspec.Struct, frozen=True):
    """A response in the send queue: its progress, and since when there has been none."""

    acknowledged: bytes
    waiting: int
    since: float


class Connections:
    """Connections of clients: the descriptors of this process with the listener's address.

    `timeout_seconds`: how long a response may make no progress. `ended` counts the connections reset.
    """

    def __init__(
        self, listener: socket.socket, timeout_seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self.ended = 0
        self._timeout_seconds = timeout_seconds
        self._timeout_changed = asyncio.Event()
        self._host, self._port = listener.getsockname()[:2]
        self._monotonic = monotonic
        self._unread: dict[int, _Unread] = {}

    def shorten_timeout(self, seconds: float) -> None:
        self._timeout_seconds = min(self._timeout_seconds, seconds)
        self._timeout_changed.set()

    async def watch(self) -> None:
        """Reset stalled connections until cancelled; each at most a sixth of the timeout, or 5 s, late."""
        while sys.platform == "linux":
            await self._pause()
            try:
                ended = await self._end_stalled()
            except OSError as error:  # no descriptor is free for the check
                _log.warning("connections could not be looked at", reason=str(error))
                continue
            if ended:
                _log.info(
                    "ended connections whose clients took nothing",
                    count=ended,
                    seconds=self._timeout_seconds,
                )

    async def _pause(self) -> None:
        seconds = min(_MAX_PAUSE_SECONDS, self._timeout_seconds / _CHECKS_PER_TIMEOUT)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._timeout_changed.wait(), seconds)
            self._timeout_changed.clear()

    async def _end_stalled(self) -> int:
        unread: dict[int, _Unread] = {}
        before = self.ended
        for descriptor in range(_FIRST_DESCRIPTOR, _descriptor_table_size()):
            if descriptor % _DESCRIPTORS_AT_ONCE == 0:
                await asyncio.sleep(0)
            waiting = _count_unsent(descriptor)
            if waiting and (connection := self._client_connection(descriptor)):
                with connection:
                    self._check(connection, waiting, unread)
        self._unread = unread
        return self.ended - before

    def end_all(self) -> int:
        """Reset every open connection; how many."""
        before = self.ended
        if sys.platform == "linux":
            for descriptor in range(_FIRST_DESCRIPTOR, _descriptor_table_size()):
                if connection := self._client_connection(descriptor):
                    with connection:
                        self._end(connection)
        return self.ended - before

    def _check(self, connection: socket.socket, waiting: int, unread: dict[int, _Unread]) -> None:
        identity = os.fstat(connection.fileno()).st_ino
        information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.stop)
        acknowledged = information[_ACKNOWLEDGED]
        now = self._monotonic()
        known = self._unread.get(identity)
        since = now
        # Some sandboxes do not count acknowledged bytes: there a shorter queue is progress. A longer one
        # is not, since each pipelined request adds a response.
        if known is not None and known.acknowledged == acknowledged and waiting >= known.waiting:
            since = known.since
        if now - since >= self._timeout_seconds:
            self._end(connection)
        else:
            unread[identity] = _Unread(acknowledged, waiting, since)

    def _end(self, connection: socket.socket) -> None:
        """Shut it down; the HTTP server then closes it, which frees the kernel's buffers."""
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            connection.shutdown(socket.SHUT_RDWR)
            self.ended += 1

    def _client_connection(self, descriptor: int) -> socket.socket | None:
        """A duplicate of the descriptor if it is a client's connection.

        The HTTP server's threads may close and reuse the original at any moment.
        """
        try:
            duplicate = os.dup(descriptor)
        except OSError:
            return None
        try:
            connection = socket.socket(fileno=duplicate)
        except OSError:
            os.close(duplicate)
            return None
        if self._is_client(connection):
            return connection
        connection.close()
        return None

    def _is_client(self, connection: socket.socket) -> bool:
        """False for a listener and for a connection that this process opened."""
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        try:
            connection.getpeername()
        except OSError:
            return False
        host, port = connection.getsockname()[:2]
        return port == self._port and self._host in (host, "0.0.0.0", "::")


def _descriptor_table_size() -> int:
    """All descriptors of this process are lower."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^FDSize:\s*(\d+)$", status, re.MULTILINE)
    assert found is not None
    return int(found[1])


def _count_unsent(descriptor: int) -> int:
    """Unacknowledged bytes in a connection's send queue; 0 for other descriptors."""
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0
