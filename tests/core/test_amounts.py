"""Amounts of money: read as people write them, kept as hundredths, written in one way."""

from __future__ import annotations

from petstore.core.amounts import amount_fault, read_amount, write_amount
from tests.support.cases import every_case


@every_case(
    ("text", "hundredths", "written"),
    [
        ("0", 0, "0.00"),
        ("0.05", 5, "0.05"),
        ("12.5", 1_250, "12.50"),
        ("12,50", 1_250, "12.50"),
        ("999999999.99", 99_999_999_999, "999999999.99"),
    ],
)
def test_an_amount_is_read_with_point_or_comma_and_written_alike(
    text: str, hundredths: int, written: str
) -> None:
    """Both are read, and what is written is read again."""
    assert amount_fault(text) is None
    assert (read_amount(text), write_amount(hundredths)) == (hundredths, written)
    assert read_amount(written) == hundredths


@every_case(
    "text",
    ["", "-1", "+1", "1.", ".5", "1.005", "1,000", "1 000", "01", "1e3", "1000000000", "\uff11", "1\n"],
)
def test_an_amount_that_could_be_read_in_two_ways_is_refused(text: str) -> None:
    """Money is never guessed."""
    assert "expected an amount such as 12.50" in str(amount_fault(text))
