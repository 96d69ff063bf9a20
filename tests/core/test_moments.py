"""Times as text: one form out, RFC 3339 in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from petstore.core.moments import iso_moment, moment_fault, read_moment
from tests.support.cases import every_case


@every_case(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-21T08:30:00.5Z", 1_795_249_800_500),
        ("2026-11-21T10:30:00.500+02:00", 1_795_249_800_500),
        ("2026-11-20T22:30:00.500-10:00", 1_795_249_800_500),
        ("1969-12-31T23:59:59.999Z", -1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2026-11-21T08:30:00.500999+00:00", 1_795_249_800_500),
        ("2026-11-21T08:30:00.500999999Z", 1_795_249_800_500),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_a_moment_with_any_offset_is_read(text: str, ms: int) -> None:
    """A moment with any offset is read to the whole millisecond, before 1970 too, with any digits."""
    assert read_moment(text) == ms


@every_case(
    "text",
    [
        "",
        "2026-11-21",
        "2026-11-21T08:30:00",
        "2026-11-21T08:30Z",
        "2026-11-21 08:30:00Z",
        "2026-11-21t08:30:00z",
        "2026-11-21T08:30:00.0123456789Z",
        "2026-11-21T08:30:00,5Z",
        "2026-11-21T08:30:60Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T08:30:00+24:00",
        "2026-11-21T08:30:00+12:60",
        "2026-11-21T08:30:00+0200",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "\uff12026-11-21T08:30:00Z",
        "2026-11-21T08:30:00Z\n",
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    """No such day, no offset, more digits than nanoseconds have, outside the years 1 to 9999 in UTC."""
    assert read_moment(text) is None
    assert moment_fault(text)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_what_is_written_is_read_back(ms: int) -> None:
    """Every millisecond of the years 1 to 9999."""
    assert read_moment(iso_moment(ms)) == ms
