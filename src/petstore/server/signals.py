"""Signals as input of an event loop: handlers only record them and wake the loop."""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
from collections.abc import Iterable
from typing import Protocol, TypeVar

# To others they say that a log was moved away. This service ignores them, where the default is an end.
WITHOUT_MEANING = (signal.SIGUSR1, signal.SIGUSR2)
TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, *WITHOUT_MEANING)


class _Readable(Protocol):
    def fileno(self) -> int: ...


_Other = TypeVar("_Other", bound=_Readable)


class SignalPipe:
    """Records the signals in TAKEN until `take`. The pipe only wakes `wait`, since it may be full."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._arrived: dict[int, None] = {}  # in order
        self._previous = {number: signal.signal(number, self._record) for number in TAKEN}
        # Blocked signals are inherited from the program that started this one.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TAKEN)

    def fileno(self) -> int:
        return self._reader.fileno()

    def wait(self, others: Iterable[_Other], timeout: float) -> list[_Other]:
        """Wait for a signal or until one of the others is readable; returns the readable ones."""
        with selectors.PollSelector() as selector:  # needs no descriptor, unlike epoll
            selector.register(self, selectors.EVENT_READ)
            for other in others:
                selector.register(other, selectors.EVENT_READ, other)
            return [key.data for key, _ in selector.select(timeout) if key.data is not None]

    def take(self) -> bytes:
        """The number of each signal that arrived since the last call, once."""
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4_096):
                pass
        arrived, self._arrived = self._arrived, {}
        return bytes(arrived)

    def _record(self, number: int, _frame: object) -> None:
        self._arrived[number] = None

    def close(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        self._reader.close()
        self._writer.close()
