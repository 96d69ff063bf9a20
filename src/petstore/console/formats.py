"""Formats values for pages: moments, durations, numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import Markup

from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from petstore.core.moments import iso_day, iso_moment

_GROUPED = re.compile(r"[0-9]{1,3}(?:([,.'\u2019\s])[0-9]{3}(?:\1[0-9]{3})*)")
_SEPARATORS = re.compile(r"[^0-9]")
_UNITS = ((DAY_MS, "day"), (HOUR_MS, "hour"), (MINUTE_MS, "minute"), (SECOND_MS, "second"))


def moment(at_ms: int | None) -> Markup:
    """A Unix time as `2026-11-22 07:15:00 UTC` in a `time` element; a dash for None."""
    if at_ms is None:
        return Markup("&ndash;")
    iso = iso_moment(at_ms)
    return Markup('<time datetime="{}">{}</time>').format(iso, f"{iso[:10]} {iso[11:19]} UTC")


def duration(length_ms: int) -> str:
    """In its greatest unit, such as `3 minutes`, rounded down."""
    for unit_ms, name in _UNITS:
        if length_ms >= unit_ms:
            count = length_ms // unit_ms
            return f"{count:,} {name}{'' if count == 1 else 's'}"
    return "less than a second"


def number(value: float) -> str:
    """With commas between thousands."""
    return f"{value:,}"


def size(length_bytes: float) -> str:
    """In its greatest unit, such as `3.2 MiB`."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while length_bytes >= 1_024 and len(units) > 1:
        length_bytes /= 1_024
        units.pop(0)
    is_whole = units[0] == "bytes" or length_bytes >= 100
    return f"{length_bytes:,.{0 if is_whole else 1}f} {units[0]}"


def ungrouped(text: str) -> str:
    """A typed number without the separators of its thousands: `1,000`, `1 000`, `1.000` or `1'000`."""
    return _SEPARATORS.sub("", text) if _GROUPED.fullmatch(text) else text


def sentence(phrase: str) -> str:
    """A phrase of the core, such as `expected 1 to 255 characters`, as a sentence of its own."""
    return f"{phrase[0].upper()}{phrase[1:]}."


def choose(names: Iterable[str]) -> str:
    """The message for a value that is not one of the choices."""
    return f"Choose one of {', '.join(names)}."


FILTERS: dict[str, Callable[..., Any]] = {
    "moment": moment,
    "duration": duration,
    "number": number,
    "size": size,
    "day": iso_day,
}
