"""What a service manager tells a process in the environment: facts about the surroundings, not settings."""

from __future__ import annotations

import os
import re

import msgspec


class Surroundings(msgspec.Struct, frozen=True):
    """Of a process that systemd started; empty or 0 for any other.

    `journal_stream` is `device:inode` of the stream to the journal (systemd.exec(5)), `notify_socket` where
    sd_notify(3) sends to, `watchdog_seconds` how long this process may be silent there.
    """

    journal_stream: str = ""
    notify_socket: str = ""
    watchdog_seconds: float = 0.0


def read_surroundings() -> Surroundings:
    """As they are for this process. What can't be read is as if it were not there."""
    named = os.environ.get
    microseconds = named("WATCHDOG_USEC", "")
    is_number = re.fullmatch("[0-9]{1,18}", microseconds, re.ASCII) is not None
    is_meant = named("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return Surroundings(
        journal_stream=named("JOURNAL_STREAM", ""),
        notify_socket=named("NOTIFY_SOCKET", ""),
        watchdog_seconds=int(microseconds) / 1_000_000 if is_meant and is_number else 0.0,
    )
