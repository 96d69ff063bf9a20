"""The fixed windows of an account: when each opened, and how many requests were made in it.

All lists and tuples are in the order of plans.WINDOWS.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

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
    latest_first: tuple[int, ...]  # indices of the windows, the one that ends last first


@lru_cache(maxsize=1_024)
def openings(*opened_ms: int) -> Openings:
    """The Openings at these Unix times."""
    ends_ms = [opened + window.length_ms for opened, window in zip(opened_ms, WINDOWS, strict=True)]
    resets = tuple(end_ms // SECOND_MS for end_ms in ends_ms)
    latest_first = tuple(sorted(EACH_WINDOW, key=lambda index: (resets[index], index), reverse=True))
    return Openings(opened_ms, max(opened_ms), min(ends_ms), resets, latest_first)


@lru_cache(maxsize=1_024)
def _stored_openings(*numbers: int) -> Openings:
    """The Openings at these times in units of `stored_ms`."""
    return openings(*(number * window.stored_ms for number, window in zip(numbers, WINDOWS, strict=True)))


def flat(expression: str) -> Any:
    """A function of two tuples that works out `expression` for each window, such as `a[{0}] - b[{0}]`.

    Written out as dataclasses write `__init__`: a loop takes three times as long, for every request.
    """
    return eval(f"lambda a, b: ({' '.join(expression.format(index) + ',' for index in EACH_WINDOW)})")


_NEVER = openings(*(0 for _ in WINDOWS))
_NONE_USED = tuple(0 for _ in WINDOWS)


class AccountWindows(msgspec.Struct, gc=False):
    """Requests that an account has used in windows that opened at some times."""

    openings: Openings = _NEVER
    used: tuple[int, ...] = _NONE_USED

    @classmethod
    def of(cls, *numbers: int) -> AccountWindows:
        """The windows with these `numbers`."""
        return cls(_stored_openings(*numbers[::2]), numbers[1::2])

    def numbers(self) -> tuple[int, ...]:
        """Each window's opening in units of `stored_ms`, and its count: the form of stores and Valkey."""
        return tuple(
            number
            for opened_ms, used, window in zip(self.openings.opened_ms, self.used, WINDOWS, strict=True)
            for number in (opened_ms // window.stored_ms, used)
        )


def ceil_seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, rounded up."""
    return -(-milliseconds // SECOND_MS)


def follow_clock(used: AccountWindows, now_ms: int) -> None:
    """Move windows to now that lie ahead of a clock which was set back, with their counts.

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
    opened, counts = list(used.openings.opened_ms), list(used.used)
    for index, window in enumerate(WINDOWS):
        if now_ms - opened[index] >= window.length_ms:
            opened[index], counts[index] = now_ms - now_ms % window.opens_ms, 0
    used.openings, used.used = openings(*opened), tuple(counts)


def later_windows(one: AccountWindows, other: AccountWindows) -> AccountWindows:
    """The later opening of each window with its count; of equal ones the greater count."""
    pairs = [zip(each.openings.opened_ms, each.used, strict=True) for each in (one, other)]
    opened_ms, used = zip(*map(max, *pairs), strict=True)
    return AccountWindows(openings(*opened_ms), used)


def oldest_day(now_ms: int) -> int:
    """The first UTC day (since 1970-01-01) whose windows still matter: yesterday.

    The clock may have been set back by up to a day while the service was down. Days ahead of it matter too.
    """
    return now_ms // DAY_MS - 1
