"""The forms of keys: access and lifetime of a new key, overlap of a rotation."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.console.formats import choose
from petstore.core.durations import DAY_MS
from petstore.core.errors import Invalid
from petstore.core.keys import ENVIRONMENTS, Access, check_label
from petstore.core.moments import read_day
from petstore.core.values import read_id

_DAYS_MAX = 3_650


class TypedKey(msgspec.Struct):
    """The fields of the form as typed, and their faults by field."""

    label: str = ""
    access: str = Access.WRITE.value
    environment: str = ""
    days: str = ""
    until: str = ""
    faults: dict[str, str] = {}


class WantedKey(msgspec.Struct, frozen=True):
    """A valid form. Without an expiry the key works until it is revoked."""

    label: str
    access: Access
    environment: str
    expires_at_ms: int | None


def read_key(form: Mapping[str, str], now_ms: int) -> tuple[TypedKey, WantedKey | None]:
    """The typed fields and, without faults, the key that they describe."""
    label, access, environment, days, until = (
        form.get(name, "").strip() for name in ("label", "access", "environment", "days", "until")
    )
    typed = TypedKey(label, access, environment, days, until, {})
    try:
        check_label(typed.label)
    except Invalid as error:
        typed.faults["label"] = error.message
    if typed.access not in list(Access):
        typed.faults["access"] = choose(Access)
    if typed.environment not in ENVIRONMENTS:
        typed.faults["environment"] = choose(ENVIRONMENTS)
    expires_at_ms = _read_expiry(typed, now_ms)
    if typed.faults:
        return typed, None
    return typed, WantedKey(typed.label, Access(typed.access), typed.environment, expires_at_ms)


def _read_expiry(typed: TypedKey, now_ms: int) -> int | None:
    """The expiry in Unix milliseconds. Adds faults to `typed`."""
    if typed.days and typed.until:
        typed.faults["until"] = "Give either a number of days or a last day, not both."
        return None
    if typed.days:
        days = read_id(typed.days)
        if days is None or days > _DAYS_MAX:
            typed.faults["days"] = f"Write a whole number from 1 to {_DAYS_MAX:,}."
            return None
        return now_ms + days * DAY_MS
    if not typed.until:
        return None
    last = read_day(typed.until)
    today = now_ms // DAY_MS
    if last is None:
        typed.faults["until"] = "Write a day such as 2027-01-31."
    elif not today <= last <= today + _DAYS_MAX:
        typed.faults["until"] = f"Choose today or a day within {_DAYS_MAX // 365} years."
    else:
        return (last + 1) * DAY_MS
    return None
