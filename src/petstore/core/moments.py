"""Times as text: RFC 3339 in UTC with milliseconds, UTC days and months."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999, where the calendar of Python ends
# RFC 3339, 5.6, to the nanosecond, as Go and Java write times. Python reads +01:60 too, and later ones 24:00.
_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_MOMENT = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_HOUR_AND_MINUTE}:[0-9]{{2}}(?:\.[0-9]{{1,9}})?(?:Z|[+-]{_HOUR_AND_MINUTE})"
)

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_FIRST_YEAR = 2000  # earlier ones are typing errors


def iso_moment(ms: int) -> str:
    """A Unix time as text, such as 2026-11-21T08:30:00.000Z; one after the year 9999 as that year's end."""
    moment = EPOCH + timedelta(milliseconds=min(ms, _LATEST_MS))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_moment_or_none(ms: int | None) -> str | None:
    """A Unix time as `iso_moment` has it; None for None."""
    return None if ms is None else iso_moment(ms)


def iso_day(day: int) -> str:
    """A UTC day, counted from the epoch, such as 2026-11-21."""
    return (EPOCH + timedelta(days=day)).date().isoformat()


def read_day(text: str) -> int | None:
    """A UTC day such as 2026-11-21, counted from the epoch; None for another text or before 2000."""
    try:
        day = date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:  # such as 2026-02-30
        return None
    return None if day is None or day.year < _FIRST_YEAR else (day - EPOCH.date()).days


def read_month(text: str) -> tuple[int, int] | None:
    """The first and the last day of a month such as 2026-11; see `read_day`."""
    first = read_day(f"{text}-01")
    return None if first is None else month_of(first)


def month_of(day: int) -> tuple[int, int]:
    """The first and the last day of the month of a UTC day, all counted from the epoch."""
    date = (EPOCH + timedelta(days=day)).date()
    first = day - date.day + 1
    return first, first + monthrange(date.year, date.month)[1] - 1


def read_moment(text: str) -> int | None:
    """The Unix time of a text with any offset, in whole milliseconds; None if `text` is not a timestamp."""
    if _MOMENT.fullmatch(text) is None:
        return None
    try:
        return (datetime.fromisoformat(text).astimezone(UTC) - EPOCH) // MILLISECOND
    except (ValueError, OverflowError):  # no such day or hour; in UTC before the year 1 or after 9999
        return None


def moment_fault(text: str) -> str | None:
    """The fault of a text that is to be a moment, as a phrase for a message."""
    if read_moment(text) is not None:
        return None
    return "expected a date and time with at most nanoseconds and an offset, such as 2026-11-21T08:30:00Z"
