"""Accounts and keys, and the limits: the minute from its first request, the UTC day, the address."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Literal, NamedTuple

from petstore_client.testing.messages import Refusal

DAY_MS = 86_400_000
Access = Literal["read", "write", "manage"]
PlanName = Literal["free", "pro", "business", "enterprise"]
LEVELS: tuple[Access, ...] = ("read", "write", "manage")
PLANS = {"free": (60, 1_000), "pro": (300, 10_000), "business": (1_000, 100_000)}


class Window(NamedTuple):
    """One window as a client sees it; `reset` is a Unix time."""

    name: str
    limit: int
    seconds: int
    used: int
    reset: int

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


class Windows:
    """Windows of which a request takes one each, or none."""

    def __init__(self, **limits: int) -> None:
        self._limits = limits
        self._opened_ms = dict.fromkeys(limits, 0)
        self._used = dict.fromkeys(limits, 0)

    def look(self, now_ms: int) -> list[Window]:
        """The windows that are open now."""
        for name in self._limits:
            length, opens = (DAY_MS, DAY_MS) if name == "day" else (60_000, 1_000)
            if now_ms - self._opened_ms[name] >= length:
                self._opened_ms[name], self._used[name] = now_ms - now_ms % opens, 0
        return [
            Window(name, limit, seconds, self._used[name], self._opened_ms[name] // 1_000 + seconds)
            for name, limit in self._limits.items()
            for seconds in [86_400 if name == "day" else 60]
        ]

    def take(self, now_ms: int) -> bool:
        """Whether each had one left."""
        has_left = all(window.remaining for window in self.look(now_ms))
        for name in self._limits:
            self._used[name] += has_left
        return has_left


def binding(windows: list[Window]) -> Window:
    """The window that stops a client first; on a tie the later one."""
    return min(reversed(windows), key=lambda window: (window.remaining, -window.reset))


def limit_headers(windows: list[Window], now_ms: int) -> dict[str, str]:
    """The limits as `X-RateLimit-*` and as `RateLimit` headers, and the time of their reading."""
    first, now = binding(windows), now_ms // 1_000
    return {
        "x-ratelimit-limit": str(first.limit),
        "x-ratelimit-remaining": str(first.remaining),
        "x-ratelimit-reset": str(first.reset),
        "ratelimit-policy": ", ".join(f'"{each.name}";q={each.limit};w={each.seconds}' for each in windows),
        "ratelimit": ", ".join(f'"{each.name}";r={each.remaining};t={each.reset - now}' for each in windows),
        "date": formatdate(now, usegmt=True),
    }


@dataclass
class Account:
    """`days` has requests, refusals and deprecated calls by the UTC day since 1970."""

    id: int
    name: str
    plan: PlanName
    limits: tuple[int, int]
    windows: Windows = field(init=False)
    days: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.windows = Windows(minute=self.limits[0], day=self.limits[1])

    def take(self, now_ms: int, *, deprecated: bool) -> None:
        """Count a request; raises rate_limited."""
        allowed = self.windows.take(now_ms)
        counts = self.days.setdefault(now_ms // DAY_MS, [0, 0, 0])
        counts[0 if allowed else 1] += 1
        counts[2] += deprecated
        if not allowed:
            used_up = binding(self.windows.look(now_ms))
            seconds = used_up.reset - now_ms // 1_000
            raise Refusal(
                "rate_limited",
                f"The limit of {used_up.limit} requests per {used_up.name} is used up;"
                f" try again in {seconds} s.",
                retry_after=str(seconds),
            )


class Key(NamedTuple):
    """A key's account and level."""

    account: Account
    access: Access

    def check(self, needed: Access) -> None:
        """Raise forbidden for a level below the one that is needed."""
        if LEVELS.index(self.access) < LEVELS.index(needed):
            raise Refusal(
                "forbidden",
                f"This operation needs a key of level {needed}; this key has {self.access}."
                " Ask the operator for one.",
            )
