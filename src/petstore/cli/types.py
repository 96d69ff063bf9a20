"""Types of arguments: whole numbers, durations, accounts, and texts that a rule of the core checks.

Numbers are as strict as in the interface: `int()` would accept `+1`, `1_0` and digits of any script.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import click
from msgspec import UNSET, UnsetType

from petstore.core.durations import DAY_MS, format_duration, parse_duration
from petstore.core.errors import Invalid
from petstore.core.fields import STAFF, Field, lines_of
from petstore.core.moments import moment_fault, read_day, read_moment, read_month
from petstore.core.pets import PetStatus
from petstore.core.values import (
    INT64_MAX,
    INT64_MIN,
    PAGE_LIMIT_DEFAULT,
    name_fault,
    read_int64,
    remark_fault,
)

_SHOWN_MAX = 24  # longer than any number, shorter than a key that was given by mistake
_DURATION_MAX_MS = 36_500 * DAY_MS
_LIST_MAX = 10_000

_Command = TypeVar("_Command", bound=Callable[..., Any])
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes of an argument as Python hands them on
_T = TypeVar("_T")
Given: TypeAlias = _T | UnsetType | None


class WholeNumber(click.ParamType[int]):
    """A whole number within bounds: digits, a minus, no leading zero."""

    name = "integer"

    def __init__(self, lowest: int, highest: int) -> None:
        self.lowest = lowest
        self.highest = highest

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        number = read_int64(text)
        if number is None or not self.lowest <= number <= self.highest:
            shown = text if len(text) <= _SHOWN_MAX else f"{text[:10]}…"
            self.fail(f"{shown!r} is not a whole number from {self.lowest} to {self.highest}.", param, ctx)
        return number


class Duration(click.ParamType[int]):
    """A duration such as 30d, as milliseconds: 1 ms to 100 years, or also 0 with `zero`."""

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if self.zero and value in ("0", "0s"):
            return 0
        try:
            parsed = parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if parsed > _DURATION_MAX_MS:
            self.fail(f"{value} is longer than 100 years ({format_duration(_DURATION_MAX_MS)}).", param, ctx)
        return parsed


class AccountReference(click.ParamType[str]):
    """An account's name or id. The store checks that it exists."""

    name = "account"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text or not text.isprintable():
            self.fail(f"{text!r} is neither the name nor the id of an account.", param, ctx)
        return text


class Days(click.ParamType[tuple[int, int]]):
    """A UTC day such as 2026-10-01, or a month such as 2026-10: its first and last day since 1970-01-01."""

    def __init__(self, name: str) -> None:
        self.name = name  # "day" or "month"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        text = str(value)
        if self.name == "month":
            found = read_month(text)
        else:
            day = read_day(text)
            found = None if day is None else (day, day)
        if found is None:
            shown = "2026-10-01" if self.name == "day" else "2026-10"
            self.fail(f"{text[:_SHOWN_MAX]!r} is not a {self.name}; write it as {shown}.", param, ctx)
        return found


class Since(click.ParamType[int]):
    """A Unix time in milliseconds: a time ago (2h), a UTC day's beginning, or a moment with an offset."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        day = read_day(text)
        at_ms = read_moment(text) if day is None else day * DAY_MS
        if at_ms is not None:
            return at_ms
        try:
            ago_ms = parse_duration(text)
        except ValueError:
            forms = "2h, 2026-10-01 or 2026-10-01T08:00:00Z"
            self.fail(f"{text[:_SHOWN_MAX]!r} is not a time; write it as {forms}.", param, ctx)
        assert ctx is not None
        now_ms: int = ctx.obj.clock.now_ms()
        return now_ms - ago_ms


DAY = Days("day")
MONTH = Days("month")
ID = WholeNumber(1, INT64_MAX)
INT64 = WholeNumber(INT64_MIN, INT64_MAX)
ACCOUNT = AccountReference()
PET_STATUS = click.Choice([status.value for status in PetStatus])


limit_option = click.option(
    "--limit",
    type=WholeNumber(1, _LIST_MAX),
    default=PAGE_LIMIT_DEFAULT,
    show_default=True,
    metavar="N",
    help=f"How many to show, at most {_LIST_MAX:,}.",
)


def options(*given: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """One decorator of several, in the order in which help shows them."""

    def add(command: _Command) -> _Command:
        for option in reversed(given):
            command = option(command)
        return command

    return add


def checked(check: Callable[[_T], None]) -> Callable[[click.Context, click.Parameter, _T], _T]:
    """A callback that turns the Invalid of a check into a usage error. What is not given passes."""

    def callback(ctx: click.Context, param: click.Parameter, value: _T) -> _T:
        try:
            if value is not None:
                check(value)
        except Invalid as error:
            raise click.BadParameter(error.message, ctx, param) from None
        return value

    return callback


def ruled(fault_of: Callable[[str], str | None], read: Callable[[str], _T]) -> Callable[..., _T | None]:
    """A callback that reads a text by a rule of the core; None for an option that is not given."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> _T | None:
        if value is None:
            return None
        if _NOT_UTF8.search(value):
            raise click.BadParameter("it is not UTF-8; set the terminal or the script to UTF-8.", ctx, param)
        if fault := fault_of(value):
            raise click.BadParameter(f"{fault}.", ctx, param)
        return read(value)

    return callback


def clearable(fault_of: Callable[[str], str | None], read: Callable[[str], _T]) -> Callable[..., Given[_T]]:
    """A callback of an option that an empty text takes away; UNSET for one that is not given."""
    given = ruled(fault_of, read)
    return lambda ctx, param, value: UNSET if value is None else given(ctx, param, value or None)


checked_name = ruled(name_fault, str)
read_ship_date = ruled(moment_fault, read_moment)  # a Unix time in milliseconds
read_remark = clearable(remark_fault, lines_of)


def option_name(field: Field) -> str:
    """The option for a field, such as --category for category_id."""
    return f"--{field.name.removesuffix('_id').replace('_', '-')}"


def field_option(field: Field, *, empty: str) -> Callable[[_Command], _Command]:
    """The option of a text or an amount that may be absent, which `empty` describes: see `clearable`."""
    assert field.text is not None
    is_of_staff = field.audience is STAFF
    hints = ["Such as 12.50."] * field.is_amount + ["For staff."] * is_of_staff + [f"Empty: {empty}."]
    return click.option(
        option_name(field),
        field.name,
        callback=clearable(field.text.fault, field.read),
        metavar="AMOUNT" if field.is_amount else "TEXT",
        help=" ".join(hints),
    )
