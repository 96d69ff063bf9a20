"""The specification's windows and plans, as data (section Limits, "Rate limits by plan").

Everything that names a window is derived from WINDOWS: see "To add", a limit, in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from petstore.core.durations import DAY_MS, MINUTE_MS, SECOND_MS
from petstore.core.errors import Invalid

# The highest limit of a window, in requests; it keeps headers and counters far inside int64.
QUOTA_MAX = 1_000_000_000


class WindowKind(msgspec.Struct, frozen=True):
    """A fixed window in which every plan limits requests, and its names wherever it is published or stored.

    A request opens it, at the last multiple of `opens_ms` before the request. Stores have that time in units
    of `stored_ms`.
    """

    name: str  # in RateLimit and RateLimit-Policy, as a member of /usage, in messages and metrics
    length_ms: int
    opens_ms: int
    words: str  # "a minute": requests of a plan
    precise_words: str  # where a day must be the UTC day
    opened_column: str  # in the table account_windows
    used_column: str
    stored_ms: int = 1

    @property
    def seconds(self) -> int:
        return self.length_ms // SECOND_MS

    @property
    def limit_column(self) -> str:
        """The limit's column in the table accounts; also a form's field, with a dash a command's option."""
        return f"per_{self.name}"

    @property
    def limit_member(self) -> str:
        """The limit's member in JSON, and in bills."""
        return f"per{self.name.capitalize()}"


# The windows, the shortest first. The last one is the UTC day, by which use is reported and billed.
WINDOWS: tuple[WindowKind, ...] = (
    WindowKind("minute", MINUTE_MS, SECOND_MS, "a minute", "a minute", "minute_opened_ms", "minute_used"),
    WindowKind("day", DAY_MS, DAY_MS, "a day", "on a UTC day", "day", "day_used", stored_ms=DAY_MS),
)
LIMIT_COLUMNS = tuple(window.limit_column for window in WINDOWS)


class Plan(msgspec.Struct, frozen=True):
    """Requests that an account may make in each window of WINDOWS."""

    name: str
    limits: tuple[int, ...]

    @property
    def per_day(self) -> int:
        """Requests on a UTC day."""
        return self.limits[-1]

    def members(self) -> dict[str, object]:
        """The plan as JSON, bills and the journal have it."""
        return {"plan": self.name, **limit_members(self.limits)}

    def phrases(self, noun: str = "") -> list[str]:
        """The limits in words, such as `60 requests a minute` and `1,000 a day`; the first has the noun."""
        nouns = [noun and f" {noun}", *[""] * (len(WINDOWS) - 1)]
        return [
            f"{limit:,}{noun} {window.words}"
            for limit, noun, window in zip(self.limits, nouns, WINDOWS, strict=True)
        ]


FREE = Plan("free", (60, 1_000))
PRO = Plan("pro", (300, 10_000))
BUSINESS = Plan("business", (1_000, 100_000))
ENTERPRISE = "enterprise"

STANDARD_PLANS = {plan.name: plan for plan in (FREE, PRO, BUSINESS)}
PLAN_NAMES = (*STANDARD_PLANS, ENTERPRISE)
# What an account may have, by its plan: webhooks, and requests that wait for an event.
WEBHOOKS_MAX = {"free": 3, "pro": 10, "business": 50, "enterprise": 100}
WAITS_MAX = {"free": 1, "pro": 5, "business": 20, "enterprise": 100}


def limit_members(limits: Sequence[int]) -> dict[str, int]:
    """Limits in the order of WINDOWS by their names in JSON."""
    return {window.limit_member: limit for window, limit in zip(WINDOWS, limits, strict=True)}


def and_list(phrases: Sequence[str]) -> str:
    """Phrases as one phrase, such as `a, b and c`."""
    return " and ".join([*filter(None, [", ".join(phrases[:-1])]), phrases[-1]])


def resolve_plan(name: str, *limits: int | None) -> Plan:
    """The plan of that name; Enterprise takes the limits agreed with the customer, in the order of WINDOWS.

    Raises Invalid, with what to do, for numbers that do not belong, are missing or out of bounds.
    """
    if name in STANDARD_PLANS:
        if any(limit is not None for limit in limits):
            raise Invalid(
                "plan", f"The {name} plan has fixed limits; give numbers only with the enterprise plan."
            )
        return STANDARD_PLANS[name]
    if name != ENTERPRISE:
        raise Invalid("plan", f"There is no plan {name!r}; the plans are {', '.join(PLAN_NAMES)}.")
    agreed = tuple(limit for limit in limits if limit is not None)
    if len(agreed) < len(WINDOWS):
        missing = LIMIT_COLUMNS[[*limits, None].index(None)]
        needed = "both" if len(WINDOWS) == 2 else "all"
        names = and_list([f"per {window.name}" for window in WINDOWS])
        raise Invalid(missing, f"The enterprise plan needs {needed} agreed numbers: requests {names}.")
    for column, limit in zip(LIMIT_COLUMNS, agreed, strict=True):
        if not 1 <= limit <= QUOTA_MAX:
            field = column.replace("_", " ")
            raise Invalid(column, f"Requests {field} must be from 1 to {QUOTA_MAX:,}, not {limit}.")
    return Plan(ENTERPRISE, agreed)
