"""The specification's plans, and every way in which numbers for one are refused."""

from __future__ import annotations

import pytest

from petstore.core.errors import Invalid
from petstore.core.limits.plans import QUOTA_MAX, Plan, and_list, resolve_plan
from tests.support.cases import every_case


@pytest.mark.parametrize(
    ("name", "per_minute", "per_day"),
    [("free", 60, 1_000), ("pro", 300, 10_000), ("business", 1_000, 100_000)],
)
def test_a_standard_plan_has_the_published_numbers(name: str, per_minute: int, per_day: int) -> None:
    """The table "Rate limits by plan" of the specification."""
    assert resolve_plan(name) == Plan(name, (per_minute, per_day))


@pytest.mark.parametrize(("per_minute", "per_day"), [(1, 1), (5_000, 2_000_000), (QUOTA_MAX, QUOTA_MAX)])
def test_enterprise_takes_the_agreed_numbers(per_minute: int, per_day: int) -> None:
    """A number is one request to a thousand million."""
    assert resolve_plan("enterprise", per_minute, per_day) == Plan("enterprise", (per_minute, per_day))


@every_case(
    ("name", "per_minute", "per_day", "field", "message"),
    [
        (
            "gold",
            None,
            None,
            "plan",
            "There is no plan 'gold'; the plans are free, pro, business, enterprise",
        ),
        ("Free", None, None, "plan", "no plan 'Free'"),
        ("", None, None, "plan", "no plan ''"),
        ("gold", 1, 1, "plan", "no plan"),
        ("free", 60, None, "plan", "fixed limits"),
        ("free", None, 1_000, "plan", "fixed limits"),
        ("pro", 300, 10_000, "plan", "fixed limits"),
        ("business", 0, 0, "plan", "fixed limits"),
        ("enterprise", None, None, "per_minute", "needs both agreed numbers"),
        ("enterprise", 5, None, "per_day", "needs both"),
        ("enterprise", None, 5, "per_minute", "needs both"),
        ("enterprise", 0, 5, "per_minute", "per minute must be from 1 to 1,000,000,000, not 0"),
        ("enterprise", 5, 0, "per_day", "per day must be from 1"),
        ("enterprise", -1, 5, "per_minute", "not -1"),
        ("enterprise", QUOTA_MAX + 1, 5, "per_minute", "per minute must be"),
        ("enterprise", 5, QUOTA_MAX + 1, "per_day", "per day must be"),
    ],
)
def test_a_refusal_says_what_to_do(
    name: str, per_minute: int | None, per_day: int | None, field: str, message: str
) -> None:
    """Unknown plans, numbers that do not belong, are missing or out of bounds; it names the field."""
    with pytest.raises(Invalid, match=message) as refused:
        resolve_plan(name, per_minute, per_day)
    assert refused.value.field == field


@pytest.mark.parametrize(("phrases", "text"), [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c")])
def test_phrases_as_a_sentence_has_them(phrases: str, text: str) -> None:
    """`and_list` joins phrases as a sentence does, for as many as there are windows."""
    assert and_list([*phrases]) == text
