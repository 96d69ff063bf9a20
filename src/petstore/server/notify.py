"""Notifications to systemd by sd_notify(3): ready, reloading, stopping, status and watchdog."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from petstore.config.systemd import SystemdEnvironment

_WITHOUT_SYSTEMD = SystemdEnvironment()


class Notifier:
    """Sends datagrams to NOTIFY_SOCKET; does nothing when that is not set."""

    def __init__(
        self, monotonic: Callable[[], float], systemd: SystemdEnvironment = _WITHOUT_SYSTEMD
    ) -> None:
        # systemd writes an abstract socket's address with an @ for its null byte.
        address = systemd.notify_socket
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._monotonic = monotonic
        self._watchdog_interval_seconds = systemd.watchdog_seconds / 2
        self._next_watchdog = monotonic()
        self._status = ""

    @property
    def interval_seconds(self) -> float:
        """The longest time between two calls of `update`."""
        return min(1.0, self._watchdog_interval_seconds or 1.0)

    def ready(self, status: str) -> None:
        """Report the end of the start or of a reload, also of one that was refused."""
        self._send("READY=1", status)

    def reloading(self) -> None:
        # systemd compares the time with its signal's; both are CLOCK_MONOTONIC.
        microseconds = round(self._monotonic() * 1_000_000)
        self._send(f"RELOADING=1\nMONOTONIC_USEC={microseconds}", "Reading the settings anew.")

    def stopping(self) -> None:
        self._send("STOPPING=1", "Stopping.")

    def update(self, status: str, *, is_healthy: bool) -> None:
        """Send the status if it changed and, while healthy, the watchdog's keep-alive twice per timeout."""
        if status != self._status:
            self._send("", status)
        now = self._monotonic()
        if is_healthy and self._watchdog_interval_seconds and now >= self._next_watchdog:
            self._next_watchdog = now + self._watchdog_interval_seconds
            self._send("WATCHDOG=1", "")

    def _send(self, state: str, status: str) -> None:
        self._status = status or self._status
        lines = [state] * bool(state) + [f"STATUS={status}"] * bool(status)
        if not self._address:
            return
        # An absent reader or a full buffer must not disturb the service.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), self._address)
