"""How arguments are read; test_refusals.py has a row for each option that uses a type."""

from __future__ import annotations

import click
import pytest

from petstore.cli.types import AccountReference, Duration, WholeNumber, checked_name
from petstore.core.values import INT64_MAX, INT64_MIN
from tests.support.cases import every_case

DAY_MS = 86_400_000


@every_case("number", [INT64_MIN, -5, 0, 7, INT64_MAX])
def test_a_whole_number(number: int) -> None:
    """Plain digits, up to both bounds, and a minus."""
    assert WholeNumber(INT64_MIN, INT64_MAX).convert(str(number), None, None) == number


@every_case(
    "text",
    [
        *("", "x", "1.0", "1e3", "+1", "01", "-0", "1_0", " 1", "\u0661"),
        *("9223372036854775808", "-9223372036854775809", "9" * 30),
    ],
)
def test_what_is_no_whole_number(text: str) -> None:
    """`int()` would bend most of them into a number; out of bounds is none too."""
    with pytest.raises(click.BadParameter, match=f"not a whole number from {INT64_MIN} to {INT64_MAX}"):
        WholeNumber(INT64_MIN, INT64_MAX).convert(text, None, None)


@pytest.mark.parametrize("text", ["0", "11", "-1"])
def test_a_whole_number_out_of_its_bounds(text: str) -> None:
    """Both bounds are named."""
    with pytest.raises(click.BadParameter, match=f"'{text}' is not a whole number from 1 to 10"):
        WholeNumber(1, 10).convert(text, None, None)


@pytest.mark.parametrize(("text", "ms"), [("1s", 1_000), ("30d", 30 * DAY_MS), ("36500d", 36_500 * DAY_MS)])
def test_a_duration(text: str, ms: int) -> None:
    """As the settings have it, at most 100 years."""
    assert Duration().convert(text, None, None) == ms


@every_case("text", ["", "0", "0s", "-1d", "1", "1.5d", "d", "30 d", "1w", "36501d"])
def test_what_is_no_duration(text: str) -> None:
    """A key that never worked, or one beyond the calendar, is not issued."""
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)


@pytest.mark.parametrize("text", ["0", "0s"])
def test_no_time_at_all_where_that_has_a_meaning(text: str) -> None:
    """With or without the unit."""
    assert Duration(zero=True).convert(text, None, None) == 0


@pytest.mark.parametrize("text", ["", "a\x1b[31m", "\udcff"])
def test_what_can_be_no_reference(text: str) -> None:
    """Bytes that are no text never reach the database."""
    with pytest.raises(click.BadParameter, match="neither the name nor the id"):
        AccountReference().convert(text, None, None)


def test_a_text_in_another_encoding_is_called_so() -> None:
    """What a terminal in Latin-1 sends: its bytes come as surrogates, of which nobody has typed one."""
    with pytest.raises(click.BadParameter, match="it is not UTF-8; set the terminal"):
        checked_name(click.Context(click.Command("add")), click.Argument(["name"]), "Zo\udceb")
