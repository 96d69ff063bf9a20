"""The plan of an account in a form: its name and, for enterprise, the agreed numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from petstore.console.visit import INCOMPLETE_FORM
from petstore.core.accounts import Account
from petstore.core.errors import Invalid, InvalidBody
from petstore.core.limits.plans import ENTERPRISE, LIMIT_COLUMNS, STANDARD_PLANS, WINDOWS, Plan, resolve_plan
from petstore.core.values import read_int64

PLANS = [
    *((plan.name, f"{plan.name}: {', '.join(plan.phrases())}") for plan in STANDARD_PLANS.values()),
    (ENTERPRISE, f"{ENTERPRISE}: the numbers below"),
]
# Such as `free:60:1000`.
_SHOWN = re.compile("([a-z]{1,20})" + ":([0-9]{1,10})" * len(WINDOWS), re.ASCII)


class TypedPlan(msgspec.Struct):
    """The fields of the form as typed; its numbers and faults by field."""

    plan: str = next(iter(STANDARD_PLANS))
    numbers: dict[str, str] = {}
    faults: dict[str, str] = {}

    @property
    def limits(self) -> list[tuple[str, str, str]]:
        """The field, the label and the text of each number."""
        return [
            (column, f"Requests {window.words}", self.numbers.get(column, ""))
            for column, window in zip(LIMIT_COLUMNS, WINDOWS, strict=True)
        ]


def typed_plan_of(account: Account) -> TypedPlan:
    """The form filled in with an account's plan."""
    plan = account.plan
    if plan.name != ENTERPRISE:
        return TypedPlan(plan.name)
    return TypedPlan(plan.name, dict(zip(LIMIT_COLUMNS, map(str, plan.limits), strict=True)))


def shown_plan(plan: Plan) -> str:
    """The plan as the form carries it, for `read_shown_plan`."""
    return ":".join(map(str, (plan.name, *plan.limits)))


def read_shown_plan(form: Mapping[str, str]) -> Plan:
    """The plan that the form showed. Raises InvalidBody for an incomplete form."""
    shown = _SHOWN.fullmatch(form.get("was", ""))
    if shown is None:
        raise InvalidBody(INCOMPLETE_FORM)
    name, *limits = shown.groups()
    return Plan(name, tuple(map(int, limits)))


def read_plan(form: Mapping[str, str]) -> tuple[TypedPlan, Plan | None]:
    """The typed fields and, without faults, the plan that they describe."""
    typed = TypedPlan(
        form.get("plan", ""), {column: form.get(column, "").strip() for column in LIMIT_COLUMNS}
    )
    limits = []
    for column, text in typed.numbers.items():
        limits.append(read_int64(text) if text else None)
        if text and limits[-1] is None:
            typed.faults[column] = "Write a whole number in digits, such as 5000."
    if typed.faults:
        return typed, None
    try:
        return typed, resolve_plan(typed.plan, *limits)
    except Invalid as error:
        typed.faults[error.field] = error.message
        return typed, None
