"""Reads the limits from the headers of an answer: `RateLimit` and `RateLimit-Policy`, else `X-RateLimit-*`.

draft-ietf-httpapi-ratelimit-headers; the specification of the service: Limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

WAIT_MAX_SECONDS = 86_400  # the day's window; a longer one is a mistake
_ITEM = re.compile(r'"([^"]{1,64})"((?:\s*;\s*[a-z]+\s*=\s*\d{1,9})*)')
_LATEST_UNIX = 10**11  # a datetime holds more than twice as much
_PARAMETER = re.compile(r"([a-z]+)\s*=\s*(\d+)")


@dataclass(frozen=True)
class Window:
    """One window of the limits, as of an answer.

    `limit` calls in `length_seconds` (0: unknown), `remaining` of them left. It ends after
    `reset_after_seconds`, rounded up, at `reset_at` by the service's clock.
    """

    name: str
    limit: int
    remaining: int
    reset_after_seconds: int
    reset_at: datetime
    length_seconds: int = 0


@dataclass(frozen=True)
class Limits:
    """The limits in the last answer: the windows `minute` and `day`, or others that the service has."""

    windows: tuple[Window, ...]

    @property
    def minute(self) -> Window | None:
        """The minute, which opens with the account's first request."""
        return self._named("minute")

    @property
    def day(self) -> Window | None:
        """The UTC day."""
        return self._named("day")

    def _named(self, name: str) -> Window | None:
        return next((window for window in self.windows if window.name == name), None)


def read_limits(headers: Mapping[str, str], wall: float) -> Limits | None:
    """The limits of an answer, None without them. `wall` is the Unix time of its receipt."""
    binding = _numbers(headers, "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
    left = _items(headers.get("ratelimit", ""))
    policy = _items(headers.get("ratelimit-policy", ""))
    items = [
        (name, policy[name]["q"], values["r"], values["t"], policy[name].get("w", 0))
        for name, values in left.items()
        if {"r", "t"} <= values.keys() and "q" in policy.get(name, {})
    ]
    if not items and binding is None:
        return None
    if not items and binding is not None:
        limit, remaining, reset = binding
        items = [("limit", limit, remaining, max(0, round(reset - service_time(headers, wall))), 0)]
    items = [(name, q, r, min(t, WAIT_MAX_SECONDS), w) for name, q, r, t, w in items]
    now = _reset_time(items, binding) or round(service_time(headers, wall))
    return Limits(
        tuple(Window(name, q, r, t, datetime.fromtimestamp(now + t, UTC), w) for name, q, r, t, w in items)
    )


def service_time(headers: Mapping[str, str], wall: float) -> float:
    """The service's clock by the answer's `Date` (RFC 9110, 6.6.1), else `wall`; Unix time in seconds."""
    try:
        date = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return wall
    return date if 0 <= date < _LATEST_UNIX else wall


def _reset_time(
    items: list[tuple[str, int, int, int, int]], binding: tuple[int, int, int] | None
) -> int | None:
    """The service's clock in whole seconds: X-RateLimit-Reset is the reset of one of the windows."""
    if binding is None or binding[2] > _LATEST_UNIX:
        return None
    limit, remaining, reset = binding
    matching = [t for _, q, r, t, _ in items if (q, r) == (limit, remaining)]
    return reset - max(matching) if matching else None


def _numbers(headers: Mapping[str, str], *names: str) -> tuple[int, int, int] | None:
    texts = [headers.get(name, "") for name in names]
    if not all(text.isascii() and text.isdigit() and len(text) <= 11 for text in texts):
        return None
    first, second, third = (int(text) for text in texts)
    return first, second, third


def _items(text: str) -> dict[str, dict[str, int]]:
    """`"minute";r=59;t=57, "day";…` as numbers by name."""
    return {
        name: {key: int(value) for key, value in _PARAMETER.findall(parameters)}
        for name, parameters in _ITEM.findall(text)
    }
