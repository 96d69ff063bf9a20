"""Times and days that people type, in the zone of the page."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from petstore.console.formats import moment_text
from petstore.core.errors import Invalid
from petstore.core.moments import read_day
from petstore.core.zones import moments_of, zone_name

# The value of an <input type="datetime-local">: seconds only if they are not 0. The year 26 is sent as 0026.
_TIME = re.compile(r"[2-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?", re.ASCII)


def read_time(field: str, typed: str, zone: ZoneInfo) -> tuple[int, str]:
    """The Unix time in a field of a date and time. Of one that comes twice it is the first, with a sentence
    that says so; else that is empty. Raises Invalid."""
    try:
        shown = datetime.fromisoformat(typed) if _TIME.fullmatch(typed) else None
        moments = moments_of(shown, zone) if shown else []
    except (ValueError, OverflowError):  # no such day or hour; the end of the year 9999
        shown, moments = None, []
    if shown is None:
        raise Invalid(field, "Expected a date and a time, such as 2026-11-22T07:15.")
    if not moments:
        raise Invalid(
            field,
            f"There is no {shown:%H:%M} on {shown:%Y-%m-%d} in {zone_name(zone)}: clocks are put forward over"
            " it. Choose another time.",
        )
    first, *again = moments
    remark = f"{shown:%H:%M} comes twice that day; this is the first: {moment_text(first, zone)}."
    return first, remark if again else ""


def read_typed_day(field: str, typed: str) -> int:
    """A day, counted from 1970-01-01. Raises Invalid."""
    day = read_day(typed)
    if day is None:
        raise Invalid(field, f"{typed!r} is not a date: write it like 2026-11-22.")
    return day
