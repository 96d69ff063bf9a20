"""The specification's plans, as data (section Limits, "Rate limits by plan")."""

from __future__ import annotations

import msgspec

from petstore.core.errors import Invalid

# Of requests in one window; the bound keeps headers and counters far inside int64.
QUOTA_MAX = 1_000_000_000


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
