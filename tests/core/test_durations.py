"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petstore.core.durations import DAY_MS, days_left, format_duration, parse_duration
from tests.support.cases import every_case

NOW = 1_764_000_000_123


@every_case(
    ("text", "milliseconds"),
    [
        ("1ms", 1),
        ("500ms", 500),
        ("10s", 10_000),
        ("5m", 300_000),
        ("24h", 86_400_000),
        ("30d", 2_592_000_000),
        (" 5m ", 300_000),
        ("999999999ms", 999_999_999),
    ],
)
def test_what_is_understood(text: str, milliseconds: int) -> None:
    """A whole number and a unit; white space around it does not matter."""
    assert parse_duration(text) == milliseconds


@every_case(
    "text",
    [
        "",
        "5",
        "m",
        "0s",
        "05m",
        "-5m",
        "+5m",
        "1.5h",
        "1e3s",
        "5M",
        "5 m",
        "5min",
        "1h30m",
        "\uff15m",
        "1_0s",
        "9" * 10 + "s",
    ],
)
def test_what_is_not(text: str) -> None:
    """Said with what would be: no fractions, signs, leading zeros, other units or sums."""
    with pytest.raises(ValueError, match="is not a duration such as 500ms, 10s, 5m, 24h or 30d"):
        parse_duration(text)


@every_case(
    ("milliseconds", "text"),
    [
        (1, "1ms"),
        (1_500, "1500ms"),
        (60_000, "1m"),
        (90_000, "90s"),
        (86_400_000, "1d"),
        (129_600_000, "36h"),
    ],
)
def test_the_shortest_form_is_shown(milliseconds: int, text: str) -> None:
    """The largest unit that divides it."""
    assert format_duration(milliseconds) == text


@given(st.integers(1, 999_999_999), st.sampled_from(("ms", "s", "m", "h", "d")))
@settings(max_examples=75, deadline=None)
def test_what_is_shown_is_read_back(number: int, unit: str) -> None:
    """Round trip, for every duration that can be written."""
    milliseconds = parse_duration(f"{number}{unit}")
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@every_case(("until", "days"), [(-1, 0), (0, 0), (1, 1), (DAY_MS, 1), (DAY_MS + 1, 2)])
def test_days_that_are_left(until: int, days: int) -> None:
    """A day that has begun counts; none is left from the end on."""
    assert days_left(NOW + until, NOW) == days
