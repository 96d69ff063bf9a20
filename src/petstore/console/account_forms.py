"""The plan of an account in a form: its name and, for enterprise, the two numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from petstore.console.visit import CUT_FORM
from petstore.core.accounts import Account
from petstore.core.errors import Invalid, InvalidBody
from petstore.core.integers import read_int64
from petstore.core.limits.plans import ENTERPRISE, STANDARD_PLANS, Plan, resolve_plan

PLANS = [
    *(
        (plan.name, f"{plan.name}: {plan.per_minute:,} a minute, {plan.per_day:,} a day")
        for plan in STANDARD_PLANS.values()
    ),
    (ENTERPRISE, f"{ENTERPRISE}: the numbers below"),
]
_NUMBERS = ("per_minute", "per_day")
# Such as `free:60:1000`.
_SHOWN = re.compile(r"([a-z]{1,20}):([0-9]{1,10}):([0-9]{1,10})", re.ASCII)


class TypedPlan(msgspec.Struct):
    """The fields as they stand in the form, and what is wrong with them by field."""

    plan: str = next(iter(STANDARD_PLANS))
    per_minute: str = ""
    per_day: str = ""
    faults: dict[str, str] = {}


def typed_plan_of(account: Account) -> TypedPlan:
    """The plan that an account has."""
    plan = account.plan
    if plan.name != ENTERPRISE:
        return TypedPlan(plan.name)
    return TypedPlan(plan.name, str(plan.per_minute), str(plan.per_day))


def read_shown_plan(form: Mapping[str, str]) -> Plan:
    """The plan that the form was made from. Raises InvalidBody for a form that no page had."""
    shown = _SHOWN.fullmatch(form.get("was", ""))
    if shown is None:
        raise InvalidBody(CUT_FORM)
    return Plan(shown[1], int(shown[2]), int(shown[3]))


def read_plan(form: Mapping[str, str]) -> tuple[TypedPlan, Plan | None]:
    """What was typed and, when nothing is wrong with it, the plan that it means."""
    per_minute, per_day = (form.get(field, "").strip() for field in _NUMBERS)
    typed = TypedPlan(form.get("plan", ""), per_minute, per_day, {})
    numbers = {}
    for field in _NUMBERS:
        text = getattr(typed, field)
        numbers[field] = read_int64(text) if text else None
        if text and numbers[field] is None:
            typed.faults[field] = "Write a whole number in digits, such as 5000."
    if typed.faults:
        return typed, None
    try:
        return typed, resolve_plan(typed.plan, numbers["per_minute"], numbers["per_day"])
    except Invalid as error:
        typed.faults[error.field] = error.message
        return typed, None
