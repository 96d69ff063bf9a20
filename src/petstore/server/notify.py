"""What the parent tells systemd, by sd_notify(3): ready, reloading, stopping, a status, and the watchdog."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from petstore.config.systemd import SystemdEnvironment

_WITHOUT_SYSTEMD = SystemdEnvironment()


class Notifier:
    """Sends datagrams to systemd's socket; without one it does nothing."""

    def __init__(
        self, monotonic: Callable[[], float], systemd: SystemdEnvironment = _WITHOUT_SYSTEMD
    ) -> None:
        # An abstract socket is written with an @ in the place of its null byte.
        address = systemd.notify_socket
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._monotonic = monotonic
        self._beat_seconds = systemd.watchdog_seconds / 2
        self._beat_at = monotonic()
        self._status = ""

    @property
    def turn_seconds(self) -> float:
        """How often `turn` has to be called at least."""
        return min(1.0, self._beat_seconds or 1.0)

    def ready(self, status: str) -> None:
        """The service serves; also the end of a reload, whatever came of it."""
        self._send("READY=1", status)

    def reloading(self) -> None:
        # systemd takes the clock for proof that this answers its own signal: it is CLOCK_MONOTONIC here.
        microseconds = round(self._monotonic() * 1_000_000)
        self._send(f"RELOADING=1\nMONOTONIC_USEC={microseconds}", "Reading the settings anew.")

    def stopping(self) -> None:
        self._send("STOPPING=1", "Stopping.")

    def turn(self, status: str, *, is_well: bool) -> None:
        """Once in a while: the status, when it is another one, and a sign of life while all is well."""
        if status != self._status:
            self._send("", status)
        now = self._monotonic()
        if is_well and self._beat_seconds and now >= self._beat_at:
            self._beat_at = now + self._beat_seconds
            self._send("WATCHDOG=1", "")

    def _send(self, state: str, status: str) -> None:
        self._status = status or self._status
        lines = [state] * bool(state) + [f"STATUS={status}"] * bool(status)
        if not self._address:
            return
        # Nobody may read, or the buffer may be full: the service goes on.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), self._address)
