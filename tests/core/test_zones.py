"""Time zones: names, the moments of a time on clocks, days, and both ends of the calendar."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

from petstore.core.durations import HOUR_MS
from petstore.core.moments import iso_moment, read_moment
from petstore.core.zones import clock_at, day_at, day_begins_ms, moments_of, read_zone, zone_name
from tests.support.cases import every_case

BERLIN, CAIRO, NEW_YORK = map(ZoneInfo, ("Europe/Berlin", "Africa/Cairo", "America/New_York"))


@every_case(
    "name", ["", "Berlin", "Europe", "europe/Berlin", "/etc/passwd", "Europe/../Asia/Tokyo", "localtime",
    "right/UTC", "Europe/Berlin/", "Europe//Berlin", "Ä", "A\0", "A" * 999],
)  # fmt: skip
def test_only_names_of_zones_are_read(name: str) -> None:
    """No path, no folder, no file of the system that is not a zone's."""
    assert read_zone(name) is None


def test_a_zone_is_called_by_its_city() -> None:
    """Staff read no path such as America/New_York."""
    assert [zone_name(zone) for zone in (BERLIN, NEW_YORK, ZoneInfo("UTC"))] == ["Berlin", "New York", "UTC"]


@every_case(
    ("shown", "expected"),
    [
        ("2026-07-01T12:00", ["2026-07-01T10:00:00.000Z"]),
        ("2026-03-29T02:30", []),
        ("2026-10-25T02:30", ["2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z"]),
        ("2026-10-25T03:00", ["2026-10-25T02:00:00.000Z"]),
    ],
)
def test_moments_of_a_time_on_clocks(shown: str, expected: list[str]) -> None:
    """One; none where clocks are put forward over it; two, in order, where they are put back."""
    assert [iso_moment(each) for each in moments_of(datetime.fromisoformat(shown), BERLIN)] == expected


def _day(*numbers: int) -> int:
    return (date(*numbers) - date(1970, 1, 1)).days


def test_days_begin_by_the_zones_calendar() -> None:
    """A day may have 23 hours, and begin at one o'clock."""
    day = _day(2026, 3, 29)
    assert day_begins_ms(day + 1, BERLIN) - day_begins_ms(day, BERLIN) == 23 * HOUR_MS
    assert day_at(day_begins_ms(day, BERLIN), BERLIN) == day
    assert day_at(day_begins_ms(day, BERLIN) - 1, BERLIN) == day - 1
    begins = day_begins_ms(_day(2026, 4, 24), CAIRO)
    assert clock_at(begins, CAIRO).isoformat() == "2026-04-24T01:00:00+03:00"


def test_the_ends_of_the_calendar() -> None:
    """A moment of the interface's first and last year has a text in every zone, and a day is not an error."""
    for text in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        ms = read_moment(text)
        assert ms is not None
        for zone in (BERLIN, NEW_YORK):
            assert str(clock_at(ms, zone).year) in text.lstrip("0")
    assert day_begins_ms(10**7, BERLIN) > 0
