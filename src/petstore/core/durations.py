"""Durations: the lengths that rules are made of, and texts such as `500ms`, `10s`, `5m`, `24h`, `30d`."""

from __future__ import annotations

import re

SECOND_MS = 1_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 86_400_000

_FORM = re.compile(r"([1-9][0-9]{0,8})(ms|s|m|h|d)", re.ASCII)
_MILLISECONDS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}


def parse_duration(text: str) -> int:
    """Milliseconds. Raises ValueError, which shows the valid forms."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 10s, 5m, 24h or 30d")
    return int(match[1]) * _MILLISECONDS[match[2]]


def format_duration(milliseconds: int) -> str:
    """The shortest form that `parse_duration` reads back."""
    for unit, size in reversed(_MILLISECONDS.items()):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    raise AssertionError("every whole number is a multiple of one")


def days_left(until_ms: int, now_ms: int) -> int:
    """Days from now until a Unix time, a begun one included; 0 from then on."""
    return max(0, -(-(until_ms - now_ms) // DAY_MS))
