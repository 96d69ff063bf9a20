"""Limits and records of the minute and the day, whatever other windows there are."""

from __future__ import annotations

from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.windows import AccountWindows

_ROOM = 10**9


def limits_of(minute: int, day: int) -> tuple[int, ...]:
    """The limits of a plan: other windows have room for all requests."""
    return tuple({"minute": minute, "day": day}.get(window.name, _ROOM) for window in WINDOWS)


def used_of(minute: tuple[int, int], day: tuple[int, int]) -> AccountWindows:
    """Used windows, each by its opening in its stored unit and its count: others have not opened."""
    named = {"minute": minute, "day": day}
    return AccountWindows.of(*(number for window in WINDOWS for number in named.get(window.name, (0, 0))))
