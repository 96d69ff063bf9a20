"""What a service manager tells a process in the environment: facts about the surroundings, not settings."""

from __future__ import annotations

import os

import msgspec


class Surroundings(msgspec.Struct, frozen=True):
    """`journal_stream` is `device:inode` of the stream to systemd's journal (systemd.exec(5)), or empty."""

    journal_stream: str = ""


def read_surroundings() -> Surroundings:
    """As they are for this process."""
    return Surroundings(journal_stream=os.environ.get("JOURNAL_STREAM", ""))
