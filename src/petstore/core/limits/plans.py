"""The specification's windows and plans, as data (section Limits, "Rate limits by plan").

Everything that names a window is derived from WINDOWS: see "To add a limit" in ARCHITECTURE.md.
"""

from __future__ import annotations

import msgspec

from petstore.core.durations import DAY_MS, MINUTE_MS, SECOND_MS
from petstore.core.errors import Invalid

# Of requests in one window; the bound keeps headers and counters far inside int64.
QUOTA_MAX = 1_000_000_000


class WindowKind(msgspec.Struct, frozen=True):
    """A fixed window in which every plan limits requests, and its names wherever it is published or stored.

    It opens with a request, at the multiple of `opens_ms` before it. Stores have that time in units of
    `stored_ms`.
    """

    name: str  # in RateLimit and RateLimit-Policy, as a member of /usage, in messages and metrics
    length_ms: int
    opens_ms: int
    words: str  # "a minute": requests of a plan
    precise_words: str  # where a day must be the UTC day
    opened_column: str  # of the table account_windows
    used_column: str
    stored_ms: int = 1

    @property
    def seconds(self) -> int:
        return self.length_ms // SECOND_MS

    @property
    def limit_column(self) -> str:
        """Of the table accounts; also the field of a form, and with a dash the option of a command."""
        return f"per_{self.name}"

    @property
    def limit_member(self) -> str:
        """In JSON, and in bills."""
        return f"per{self.name.capitalize()}"


# From the shortest to the longest. The last one is the UTC day, by which use is reported and billed.
WINDOWS: tuple[WindowKind, ...] = (
    WindowKind("minute", MINUTE_MS, SECOND_MS, "a minute", "a minute", "minute_opened_ms", "minute_used"),
    WindowKind("day", DAY_MS, DAY_MS, "a day", "on a UTC day", "day", "day_used", stored_ms=DAY_MS),
)
LIMIT_COLUMNS = tuple(window.limit_column for window in WINDOWS)


class Plan(msgspec.Struct, frozen=True):
    """Requests that an account may make in a minute window and on a UTC calendar day."""

    name: str
    per_minute: int
    per_day: int


FREE = Plan("free", 60, 1_000)
PRO = Plan("pro", 300, 10_000)
BUSINESS = Plan("business", 1_000, 100_000)
ENTERPRISE = "enterprise"

STANDARD_PLANS = {plan.name: plan for plan in (FREE, PRO, BUSINESS)}
PLAN_NAMES = (*STANDARD_PLANS, ENTERPRISE)


def resolve_plan(name: str, per_minute: int | None = None, per_day: int | None = None) -> Plan:
    """The plan of that name; Enterprise takes the two numbers agreed with the customer.

    Raises Invalid, with what to do, for numbers that do not belong, are missing or out of bounds.
    """
    if name in STANDARD_PLANS:
        if per_minute is not None or per_day is not None:
            raise Invalid(
                "plan", f"The {name} plan has fixed limits; give numbers only with the enterprise plan."
            )
        return STANDARD_PLANS[name]
    if name != ENTERPRISE:
        raise Invalid("plan", f"There is no plan {name!r}; the plans are {', '.join(PLAN_NAMES)}.")
    if per_minute is None or per_day is None:
        raise Invalid(
            "per_minute" if per_minute is None else "per_day",
            "The enterprise plan needs both agreed numbers: requests per minute and per day.",
        )
    for field, value in (("per_minute", per_minute), ("per_day", per_day)):
        if not 1 <= value <= QUOTA_MAX:
            raise Invalid(
                field, f"Requests {field.replace('_', ' ')} must be from 1 to {QUOTA_MAX:,}, not {value}."
            )
    return Plan(ENTERPRISE, per_minute, per_day)
