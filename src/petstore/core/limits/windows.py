"""The fixed windows of an account: when each opened, and how many requests were made in it.

All lists and tuples are in the order of plans.WINDOWS.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from petstore.core.durations import DAY_MS, SECOND_MS
from petstore.core.limits.plans import WINDOWS

EACH_WINDOW = range(len(WINDOWS))


class Openings(msgspec.Struct, frozen=True, gc=False):
    """When the windows opened, and what every request asks of that. Made by `openings`."""

    opened_ms: tuple[int, ...]  # Unix time
    since_ms: int  # the last opening: all windows are open from then on ...
    until_ms: int  # ... until the first end
    reset_at: tuple[int, ...]  # Unix time in seconds of each end


@lru_cache(maxsize=1_024)
def openings(*opened_ms: int) -> Openings:
    """The Openings at these Unix times."""
    ends_ms = [opened + window.length_ms for opened, window in zip(opened_ms, WINDOWS, strict=True)]
    resets = tuple(end_ms // SECOND_MS for end_ms in ends_ms)
    return Openings(opened_ms, max(opened_ms), min(ends_ms), resets)


_NEVER = openings(*(0 for _ in WINDOWS))


class AccountWindows(msgspec.Struct, gc=False):
    """Requests that an account has used in windows that opened at some times."""

    openings: Openings = _NEVER
    used: list[int] = msgspec.field(default_factory=lambda: [0 for _ in WINDOWS])

    @classmethod
    def of(cls, *numbers: int) -> AccountWindows:
        """Of `numbers`."""
        opened = [number * window.stored_ms for number, window in zip(numbers[::2], WINDOWS, strict=True)]
        return cls(openings(*opened), list(numbers[1::2]))

    def numbers(self) -> tuple[int, ...]:
        """Of each window its opening in units of `stored_ms` and its count: the form of stores and Valkey."""
        return tuple(
            number
            for opened_ms, used, window in zip(self.openings.opened_ms, self.used, WINDOWS, strict=True)
            for number in (opened_ms // window.stored_ms, used)
        )

    def copy(self) -> AccountWindows:
        """Another record of the same numbers."""
        return AccountWindows(self.openings, self.used.copy())


def ceil_seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, rounded up."""
    return -(-milliseconds // SECOND_MS)


def follow_clock(used: AccountWindows, now_ms: int) -> None:
    """After the clock was set back: move windows that lie ahead to now, with their counts.

    No window then ends later than its length from now.
    """
    used.openings = openings(
        *(
            now_ms - now_ms % window.opens_ms if now_ms < opened_ms else opened_ms
            for window, opened_ms in zip(WINDOWS, used.openings.opened_ms, strict=True)
        )
    )


def roll(used: AccountWindows, now_ms: int) -> None:
    """Open new windows in place of those that have ended."""
    opened = list(used.openings.opened_ms)
    for at, window in enumerate(WINDOWS):
        if now_ms - opened[at] >= window.length_ms:
            opened[at] = now_ms - now_ms % window.opens_ms
            used.used[at] = 0
    used.openings = openings(*opened)


def later_windows(one: AccountWindows, other: AccountWindows) -> AccountWindows:
    """Of each window the later one; of equal ones the greater count."""
    later = [
        max(mine, theirs)
        for mine, theirs in zip(
            zip(one.openings.opened_ms, one.used, strict=True),
            zip(other.openings.opened_ms, other.used, strict=True),
            strict=True,
        )
    ]
    return AccountWindows(openings(*(opened_ms for opened_ms, _ in later)), [used for _, used in later])


def oldest_day(now_ms: int) -> int:
    """The first UTC day (since 1970-01-01) whose windows still matter: yesterday.

    The clock may have been set back by up to a day while the service was down. Days ahead of it matter too.
    """
    return now_ms // DAY_MS - 1
