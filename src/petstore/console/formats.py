"""Formats values for pages: moments, durations, numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from petstore.core.moments import iso_day, iso_moment
from petstore.core.zones import clock_at

_GROUPED = re.compile(r"[0-9]{1,3}(?:([,.'\u2019\s])[0-9]{3}(?:\1[0-9]{3})*)")
_SEPARATORS = re.compile(r"[^0-9]")
_UNITS = ((DAY_MS, "day"), (HOUR_MS, "hour"), (MINUTE_MS, "minute"), (SECOND_MS, "second"))
_DAYS_SHOWN = 30
_DASH = Markup("&ndash;")


def moment_text(at_ms: int, zone: ZoneInfo) -> str:
    """A Unix time such as `2026-11-22 08:15:00 CET`."""
    shown = clock_at(at_ms, zone)
    name = shown.tzname() or ""
    return f"{_clock_text(shown)} {name if name[:1].isalpha() else f'UTC{name}'}"


def moment(context: Mapping[str, Any], at_ms: int | None) -> Markup:
    """A Unix time as `moment_text` in a `time` element with UTC in its title; a dash for None."""
    if at_ms is None:
        return _DASH
    return _time(at_ms, moment_text(at_ms, context["zone"]))


def clock(context: Mapping[str, Any], at_ms: int) -> Markup:
    """A time as `moment` has it, without the zone: for a column whose title has that."""
    shown = _clock_text(clock_at(at_ms, context["zone"]))
    return _time(at_ms, shown)


def ago(context: Mapping[str, Any], at_ms: int | None) -> Markup:
    """A time such as `3 days ago` or `in 2 hours`; farther than 30 days away the day. A dash for None.

    The title has the moment in the zone and in UTC. console.js keeps the text up to date.
    """
    if at_ms is None:
        return _DASH
    zone, away_ms = context["zone"], at_ms - context["now_ms"]
    if abs(away_ms) > _DAYS_SHOWN * DAY_MS:
        text = _clock_text(clock_at(at_ms, zone))[:10]
    elif abs(away_ms) < SECOND_MS:
        text = "now"
    else:
        text = f"in {duration(away_ms)}" if away_ms > 0 else f"{duration(-away_ms)} ago"
    return _time(at_ms, text, moment_text(at_ms, zone), " data-ago")


def _time(at_ms: int, text: str, title: str = "", attribute: str = "") -> Markup:
    """The element, whose title ends with UTC. Digits and names of zones need no escapes: a third
    of the time of a long list."""
    iso = iso_moment(at_ms)
    utc = f"{iso[:10]} {iso[11:19]} UTC"
    titles = utc if title in ("", utc) else f"{title}, {utc}"
    return Markup(f'<time datetime="{iso}" title="{titles}"{attribute}>{text}</time>')


def _clock_text(shown: datetime) -> str:
    return shown.replace(tzinfo=None).isoformat(" ", "seconds")


def duration(length_ms: int) -> str:
    """A duration in its greatest unit, such as `3 minutes`, rounded down."""
    for unit_ms, name in _UNITS:
        if length_ms >= unit_ms:
            count = length_ms // unit_ms
            return f"{count:,} {name}{'' if count == 1 else 's'}"
    return "less than a second"


def number(value: float) -> str:
    """A number with commas between thousands."""
    return f"{value:,}"


def size(length_bytes: float) -> str:
    """A size in its greatest unit, such as `3.2 MiB`."""
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
    "duration": duration,
    "number": number,
    "size": size,
    "day": iso_day,
}
# They take the context of the page, which has `zone` and `now_ms`, first.
FILTERS_OF_PAGE: dict[str, Callable[..., Any]] = {"moment": moment, "clock": clock, "ago": ago}
