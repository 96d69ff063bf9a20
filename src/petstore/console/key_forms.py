"""The forms of keys: what a new one may do, how long it works, and the mark that lets a form issue once."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

import msgspec

from petstore.console.visit import CUT_FORM
from petstore.core.durations import DAY_MS, HOUR_MS, format_duration, parse_duration
from petstore.core.errors import Conflict, Invalid, InvalidBody
from petstore.core.idempotency import KEPT_MS, Idempotency
from petstore.core.integers import read_id
from petstore.core.keys import ENVIRONMENTS, Access, check_label
from petstore.core.moments import read_day

ACCESS = [
    (Access.READ.value, "read: list animals and own orders. Enough for a published site."),
    (Access.WRITE.value, "write: also add animals and place orders."),
    (Access.MANAGE.value, "manage: also change and remove everything. For the store's own programs."),
]
_DAYS_MAX = 3_650
_OVERLAP_MAX_MS = 365 * DAY_MS
_MARK_BYTES = 16
_MARK = re.compile(r"([0-9]{13})\.[A-Za-z0-9_-]{22}", re.ASCII)
# A form is used up for KEPT_MS, so an older one must not issue again.
_MARK_MAX_MS = KEPT_MS - HOUR_MS


class TypedKey(msgspec.Struct):
    """The fields as they stand in the form, and what is wrong with them by field."""

    label: str = ""
    access: str = Access.WRITE.value
    environment: str = ""
    days: str = ""
    until: str = ""
    faults: dict[str, str] = {}


class WantedKey(msgspec.Struct, frozen=True):
    """What a new key is to be; without an expiry it works until it is revoked."""

    label: str
    access: Access
    environment: str
    expires_at_ms: int | None


def read_key(form: Mapping[str, str], now_ms: int) -> tuple[TypedKey, WantedKey | None]:
    """What was typed and, when nothing is wrong with it, the key that it means."""
    label, access, environment, days, until = (
        form.get(name, "").strip() for name in ("label", "access", "environment", "days", "until")
    )
    typed = TypedKey(label, access, environment, days, until, {})
    try:
        check_label(typed.label)
    except Invalid as error:
        typed.faults["label"] = error.message
    if typed.access not in list(Access):
        typed.faults["access"] = f"Choose one of {', '.join(Access)}."
    if typed.environment not in ENVIRONMENTS:
        typed.faults["environment"] = f"Choose one of {', '.join(ENVIRONMENTS)}."
    expires_at_ms = _read_expiry(typed, now_ms)
    if typed.faults:
        return typed, None
    return typed, WantedKey(typed.label, Access(typed.access), typed.environment, expires_at_ms)


def _read_expiry(typed: TypedKey, now_ms: int) -> int | None:
    """In Unix milliseconds; a fault goes to its field."""
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


def read_overlap(text: str) -> int:
    """How long a rotated key goes on working, in milliseconds. Raises Invalid."""
    try:
        overlap_ms = 0 if text == "0" else parse_duration(text)
    except ValueError as error:
        raise Invalid("overlap", f"{error}, or 0 for no time at all.") from None
    if overlap_ms > _OVERLAP_MAX_MS:
        raise Invalid("overlap", f"The old key goes on for {format_duration(_OVERLAP_MAX_MS)} at most.")
    return overlap_ms


def new_mark(now_ms: int) -> str:
    """A hidden field of a form: however often the form is sent, it issues one key."""
    return f"{now_ms}.{secrets.token_urlsafe(_MARK_BYTES)}"


def read_mark(form: Mapping[str, str], account_id: int, now_ms: int) -> Idempotency:
    """Raises InvalidBody for a form that no page had, and Conflict for an old one."""
    mark = _MARK.fullmatch(form.get("once", ""))
    if mark is None:
        raise InvalidBody(CUT_FORM)
    if now_ms - int(mark[1]) > _MARK_MAX_MS:
        raise Conflict("This form is old; load its page again.")
    return Idempotency(account_id, f"console:{mark[0]}")
