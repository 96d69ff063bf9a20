"""The environment variables that systemd sets. The settings are in table.py."""

from __future__ import annotations

import os
import re

import msgspec


class SystemdEnvironment(msgspec.Struct, frozen=True):
    """Empty or 0 in a process that systemd did not start.

    `journal_stream` is `device:inode` of the stream to the journal (systemd.exec(5)), `notify_socket` the
    address for sd_notify(3), `watchdog_seconds` the longest silence that sd_watchdog_enabled(3) allows.
    """

    journal_stream: str = ""
    notify_socket: str = ""
    watchdog_seconds: float = 0.0


def read_systemd() -> SystemdEnvironment:
    """Read the variables of this process. One that can't be parsed counts as missing."""
    named = os.environ.get
    microseconds = named("WATCHDOG_USEC", "")
    is_number = re.fullmatch("[0-9]{1,18}", microseconds, re.ASCII) is not None
    is_meant = named("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return SystemdEnvironment(
        journal_stream=named("JOURNAL_STREAM", ""),
        notify_socket=named("NOTIFY_SOCKET", ""),
        watchdog_seconds=int(microseconds) / 1_000_000 if is_meant and is_number else 0.0,
    )
