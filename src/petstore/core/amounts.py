"""Amounts of money: integers of hundredths in columns, texts with a point everywhere else.

A store has one currency, which nothing here names.
"""

from __future__ import annotations

import re

AMOUNT_MAX_DIGITS = 9
# A comma is a point to half of the world; three digits after it would be thousands to the other half.
AMOUNT = re.compile(rf"(0|[1-9][0-9]{{0,{AMOUNT_MAX_DIGITS - 1}}})(?:[.,]([0-9]{{1,2}}))?", re.ASCII)


def amount_fault(text: str) -> str | None:
    """The fault of an amount, as a phrase for a message; None for a valid one."""
    if AMOUNT.fullmatch(text):
        return None
    return f"expected an amount such as 12.50, from 0 to {'9' * AMOUNT_MAX_DIGITS}.99"


def read_amount(text: str) -> int:
    """The hundredths of a valid amount."""
    found = AMOUNT.fullmatch(text)
    assert found is not None
    return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))


def write_amount(hundredths: int) -> str:
    """An amount as text, such as 12.50."""
    return f"{hundredths // 100}.{hundredths % 100:02}"
