"""Charts without script: their paths, and what they say to those who do not see them."""

from __future__ import annotations

import pytest

from petstore.console.formats import size
from petstore.console.service import path, short


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ""),
        ([None, None], ""),
        ([0.0, 0.0], "M0 31.0h0L1 31.0"),
        ([0.0, 5.0, 10.0], "M0 31.0h0L1 16.0L2 1.0"),
        ([None, 2.0, None, 2.0, 1.0], "M1 1.0h0M3 1.0h0L4 16.0"),
    ],
)
def test_a_line_from_nothing_to_the_highest_value(values: list[float | None], expected: str) -> None:
    """0 is at the bottom, also where all is 0; what is unknown is a gap and not a 0."""
    assert path(values) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (0.04, "0.04"), (0.123, "0.1"), (3.21, "3.2"), (12.7, "13"), (1_204.4, "1,204")],
)
def test_numbers_have_only_digits_that_mean_something(value: float, expected: str) -> None:
    """A rate is an average, not an exact number."""
    assert short(value) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, "0 bytes"),
        (1_023, "1,023 bytes"),
        (1_536, "1.5 KiB"),
        (150 * 1_024**2, "150 MiB"),
        (1_024**5, "1,024 TiB"),
    ],
)
def test_sizes_are_in_their_greatest_unit(length: int, expected: str) -> None:
    """Up to tebibytes."""
    assert size(length) == expected
