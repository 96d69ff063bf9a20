"""Time zones by their IANA names: what clocks there show, and which moments they show a time at."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from petstore.core.durations import DAY_MS
from petstore.core.moments import EPOCH, MILLISECOND

# The calendar of Python ends with the year 9999; a day of it may already be over elsewhere.
_LAST_DAY = (datetime(9999, 12, 30, tzinfo=UTC) - EPOCH).days
# Systems also have files in lower case that are not names of IANA's, such as `localtime` and `right/UTC`.
_NAME = re.compile(r"(?!.*//)[A-Z][A-Za-z0-9_+/-]{0,63}(?<!/)", re.ASCII)


def read_zone(name: str) -> ZoneInfo | None:
    """The zone of a name such as `Europe/Berlin`; None for an unknown name."""
    try:
        return ZoneInfo(name) if _NAME.fullmatch(name) else None
    except (KeyError, ValueError, OSError):  # not there, no data of a zone, a folder
        return None


def zone_name(zone: ZoneInfo) -> str:
    """The zone as people call it, such as `New York`."""
    return zone.key.rpartition("/")[2].replace("_", " ")


def clock_at(ms: int, zone: ZoneInfo) -> datetime:
    """What clocks show at a Unix time; in UTC at both ends of the calendar, where the zone has no day."""
    moment = EPOCH + timedelta(milliseconds=min(ms, (_LAST_DAY + 2) * DAY_MS - 1))
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def moments_of(shown: datetime, zone: ZoneInfo) -> list[int]:
    """The Unix times at which clocks show this time (a datetime without a zone), in order.

    An empty list when clocks skip this time, two times when it occurs twice. Raises OverflowError at the
    ends of the calendar.
    """
    found = set()
    for fold in (0, 1):
        moment = shown.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == shown:
            found.add((moment - EPOCH) // MILLISECOND)
    return sorted(found)


def day_at(ms: int, zone: ZoneInfo) -> int:
    """The day of the zone's calendar at a Unix time, counted from 1970-01-01."""
    return (clock_at(ms, zone).date() - EPOCH.date()).days


def day_begins_ms(day: int, zone: ZoneInfo) -> int:
    """The Unix time at which a day of the zone's calendar, counted from 1970-01-01, begins."""
    date = EPOCH.date() + timedelta(days=min(day, _LAST_DAY))
    return (datetime.combine(date, time(), zone) - EPOCH) // MILLISECOND
