"""The two fixed windows of an account: a minute that opens with its first request, and the UTC day."""

from __future__ import annotations

import msgspec
from msgspec.structs import astuple

from petstore.core.durations import DAY_MS, DAY_SECONDS, MINUTE_MS, SECOND_MS
from petstore.core.limits.plans import WINDOWS

EACH_WINDOW = range(len(WINDOWS))


class AccountWindows(msgspec.Struct, gc=False):
    """Requests that an account has used. The stores' columns and take.lua have its order of fields."""

    minute_opened_ms: int = -MINUTE_MS  # Unix time, a whole second; the window ends 60 s later
    minute_used: int = 0  # requests since then
    day: int = 0  # UTC days since 1970-01-01
    day_used: int = 0  # requests on that day

    @classmethod
    def of(cls, *numbers: int) -> AccountWindows:
        """Of `numbers`."""
        return cls(*numbers)

    def numbers(self) -> tuple[int, ...]:
        """Of each window its opening in units of `stored_ms` and its count: the form of stores and Valkey."""
        return astuple(self)

    @property
    def used(self) -> list[int]:
        """Of each window its count."""
        return [self.minute_used, self.day_used]

    @property
    def reset_at(self) -> tuple[int, ...]:
        """Unix time in seconds of each window's end."""
        return (self.minute_opened_ms // SECOND_MS + 60, (self.day + 1) * DAY_SECONDS)

    def copy(self) -> AccountWindows:
        """Another record of the same numbers."""
        return AccountWindows(*self.numbers())


def ceil_seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, rounded up."""
    return -(-milliseconds // SECOND_MS)


def follow_clock(used: AccountWindows, now_ms: int) -> None:
    """After the clock was set back: move windows that lie ahead to now, with their counts.

    No window then ends later than its length from now.
    """
    if now_ms < used.minute_opened_ms:
        used.minute_opened_ms = now_ms - now_ms % SECOND_MS
    if now_ms < used.day * DAY_MS:
        used.day = now_ms // DAY_MS


def roll(used: AccountWindows, now_ms: int) -> None:
    """Open new windows in place of those that have ended."""
    if now_ms - used.minute_opened_ms >= MINUTE_MS:
        used.minute_opened_ms = now_ms - now_ms % SECOND_MS
        used.minute_used = 0
    day = now_ms // DAY_MS
    if day > used.day:
        used.day = day
        used.day_used = 0


def later_windows(one: AccountWindows, other: AccountWindows) -> AccountWindows:
    """Of each window the later one; of equal ones the greater count."""
    mine, theirs = one.numbers(), other.numbers()
    pairs = [max(mine[at : at + 2], theirs[at : at + 2]) for at in range(0, len(mine), 2)]
    return AccountWindows.of(*(number for pair in pairs for number in pair))


def oldest_day(now_ms: int) -> int:
    """The first UTC day (since 1970-01-01) whose windows still matter: yesterday.

    The clock may have been set back by up to a day while the service was down. Days ahead of it matter too.
    """
    return now_ms // DAY_MS - 1
