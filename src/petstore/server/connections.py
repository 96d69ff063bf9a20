"""The connections of this process's clients: ends those whose client takes nothing of its answer (Linux).

The HTTP server has no deadline for writing. The kernel's own, TCP_USER_TIMEOUT, also ends clients that read
slowly through a small window: docs/decisions/0018-watch-over-unread-answers.md.
"""

from __future__ import annotations

import array
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
_DESCRIPTORS_AT_ONCE = 512  # looked at in about a millisecond, then requests have their turn
_LOOKS_WITHIN_PATIENCE = 6
_LONGEST_PAUSE_SECONDS = 5.0
# struct tcp_info, linux/tcp.h: tcpi_bytes_acked, an unsigned 64-bit number.
_ACKNOWLEDGED = slice(120, 128)
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)

_log = structlog.get_logger("petstore")


class _Unread(msgspec.Struct, frozen=True):
    """An answer that waits for its client: how far it has come, and the last time that this was new."""

    acknowledged: bytes
    waiting: int
    since: float


class Connections:
    """What clients have open with this process, found by the listener's address among its descriptors.

    `patience_seconds`: how long an unsent byte may wait without any other being taken.
    """

    def __init__(
        self, listener: socket.socket, patience_seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self.ended = 0
        self._patience_seconds = patience_seconds
        self._impatient = asyncio.Event()
        self._host, self._port = listener.getsockname()[:2]
        self._monotonic = monotonic
        self._unread: dict[int, _Unread] = {}

    def lose_patience(self, seconds: float) -> None:
        """Wait no longer than so for any client from now on."""
        self._patience_seconds = min(self._patience_seconds, seconds)
        self._impatient.set()

    async def watch(self) -> None:
        """End stalled connections until cancelled. Each is ended at most a sixth of the patience too late."""
        while sys.platform == "linux":
            await self._pause()
            try:
                ended = await self._end_stalled()
            except OSError as error:  # no descriptor is left to look with
                _log.warning("connections could not be looked at", reason=str(error))
                continue
            if ended:
                _log.info(
                    "ended connections whose clients took nothing",
                    count=ended,
                    seconds=self._patience_seconds,
                )

    async def _pause(self) -> None:
        seconds = min(_LONGEST_PAUSE_SECONDS, self._patience_seconds / _LOOKS_WITHIN_PATIENCE)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._impatient.wait(), seconds)
            self._impatient.clear()

    async def _end_stalled(self) -> int:
        unread: dict[int, _Unread] = {}
        before = self.ended
        for descriptor in range(_FIRST_DESCRIPTOR, _table_size()):
            if descriptor % _DESCRIPTORS_AT_ONCE == 0:
                await asyncio.sleep(0)
            waiting = _count_unsent(descriptor)
            if waiting and (connection := self._of_client(descriptor)):
                with connection:
                    self._judge(connection, waiting, unread)
        self._unread = unread
        return self.ended - before

    def end_all(self) -> int:
        """Reset every connection that is open; how many."""
        before = self.ended
        if sys.platform == "linux":
            for descriptor in range(_FIRST_DESCRIPTOR, _table_size()):
                if connection := self._of_client(descriptor):
                    with connection:
                        self._end(connection)
        return self.ended - before

    def _judge(self, connection: socket.socket, waiting: int, unread: dict[int, _Unread]) -> None:
        identity = os.fstat(connection.fileno()).st_ino
        information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.stop)
        acknowledged = information[_ACKNOWLEDGED]
        now = self._monotonic()
        known = self._unread.get(identity)
        since = now
        # Some sandboxes do not count what was acknowledged; there the queue tells, when it gets shorter. It
        # gets longer with each answer, for a client that reads nothing too.
        if known is not None and known.acknowledged == acknowledged and waiting >= known.waiting:
            since = known.since
        if now - since >= self._patience_seconds:
            self._end(connection)
        else:
            unread[identity] = _Unread(acknowledged, waiting, since)

    def _end(self, connection: socket.socket) -> None:
        """The HTTP server finds it broken and closes it, which frees what the kernel holds for the client."""
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            connection.shutdown(socket.SHUT_RDWR)
            self.ended += 1

    def _of_client(self, descriptor: int) -> socket.socket | None:
        """The client's connection behind a descriptor, if it is one; under a descriptor of our own, since the
        HTTP server's threads may close theirs, and open another thing under it, at any moment."""
        try:
            duplicate = os.dup(descriptor)
        except OSError:
            return None
        try:
            connection = socket.socket(fileno=duplicate)
        except OSError:
            os.close(duplicate)
            return None
        if self._is_of_client(connection):
            return connection
        connection.close()
        return None

    def _is_of_client(self, connection: socket.socket) -> bool:
        """Whether it is neither a listener nor a connection that this process has made."""
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        try:
            connection.getpeername()
        except OSError:
            return False
        host, port = connection.getsockname()[:2]
        return port == self._port and self._host in (host, "0.0.0.0", "::")


def _table_size() -> int:
    """No descriptor of this process is as high: the size of its table, which grows by doubling."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^FDSize:\s*(\d+)$", status, re.MULTILINE)
    assert found is not None
    return int(found[1])


def _count_unsent(descriptor: int) -> int:
    """The bytes in a connection's send queue, those that are on their way among them; 0 for what has none."""
    length = array.array("i", [0])
    try:
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, length)
    except OSError:
        return 0
    return length[0]
