"""Signals that wake whoever waits, and are taken where nothing else is going on."""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
from collections.abc import Iterable
from typing import Protocol, TypeVar

TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class _Readable(Protocol):
    def fileno(self) -> int: ...


_Other = TypeVar("_Other", bound=_Readable)


class SignalPipe:
    """What has arrived. The pipe only wakes: it may be full, and the byte of the next signal lost."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._arrived: dict[int, None] = {}  # in order
        self._before = {number: signal.signal(number, self._note) for number in TAKEN}
        # A program that blocks signals hands that on to what it starts.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TAKEN)

    def fileno(self) -> int:
        return self._reader.fileno()

    def wait(self, others: Iterable[_Other], timeout: float) -> list[_Other]:
        """Until a signal arrives, or one of the others can be read; which of the others."""
        with selectors.PollSelector() as selector:  # which takes no descriptor: there may be none left
            selector.register(self, selectors.EVENT_READ)
            for other in others:
                selector.register(other, selectors.EVENT_READ, other)
            return [key.data for key, _ in selector.select(timeout) if key.data is not None]

    def take(self) -> bytes:
        """What arrived since the last call: the number of each signal, once."""
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4_096):
                pass
        arrived, self._arrived = self._arrived, {}
        return bytes(arrived)

    def _note(self, number: int, _frame: object) -> None:
        self._arrived[number] = None

    def close(self) -> None:
        """Handle signals as before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        self._reader.close()
        self._writer.close()
