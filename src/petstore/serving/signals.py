"""Signals as bytes in a pipe: taken one at a time, where nothing else is going on."""

from __future__ import annotations

import signal
import socket

TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class SignalPipe:
    """What has arrived: one byte for each signal, its number."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in TAKEN}

    def fileno(self) -> int:
        return self._reader.fileno()

    def take(self) -> bytes:
        """What arrived since the last call."""
        return self._reader.recv(4_096)

    def close(self) -> None:
        """Handle signals as before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        self._reader.close()
        self._writer.close()
