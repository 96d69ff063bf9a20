"""Faults of a file that an operator should correct, though a service can start on it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from petstore.core.clock import Clock
from petstore.core.errors import StoreFull
from petstore.storage.sqlite import files, reserve, schema, upkeep

_CLOCK_TOLERANCE_MS = 300_000


def warnings(path: str, busy_timeout_ms: int, clock: Clock) -> list[str]:
    """One line for each, for an existing file. Frees the reserved disk space when opening it needs that."""
    lines = []
    try:  # SQLite makes some of its files anew after a clean stop, also to read
        schema.read_file(path, busy_timeout_ms)
    except StoreFull:
        if reserve.give_up(path):
            lines.append(
                "No room to open the database: the room that was kept back for that is used up. Make room."
            )
    if closed := files.close_to_others(path):
        lines.append(closed)
    if files.readable_by_others(path):
        lines.append(f"{path} can be read by every user of this machine. To end that: chmod 600 {path}.")
    if (names := Path(path).stat().st_nlink) > 1:
        lines.append(
            f"{path} has {names} names, since there are hard links to it. Remove the others:"
            " SQLite's log goes by the name, and a command that uses another one damages the database."
        )
    newest_ms = upkeep.newest_ms(path, busy_timeout_ms)
    if clock.now_ms() < newest_ms - _CLOCK_TOLERANCE_MS:
        lines.append(
            f"The clock says {_text(clock.now_ms())}, and {path} has a record of {_text(newest_ms)}."
            " Set the clock: limits, expiry of keys and usage go by it."
        )
    return lines


def _text(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
