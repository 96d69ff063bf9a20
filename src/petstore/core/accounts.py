"""Accounts: their names, plans and states."""

from __future__ import annotations

import re

import msgspec

from petstore.core.errors import Conflict, Invalid
from petstore.core.limits.plans import Plan

_NAME = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9._-]{1,64}\Z", re.ASCII)
_BEGINNING = re.compile(r"[A-Za-z0-9._-]{0,64}", re.ASCII)
STATES = ("active", "suspended", "closed")


class Account(msgspec.Struct, frozen=True):
    """A customer. Its keys share its plan's quota, so more keys never mean more quota."""

    id: int
    name: str
    plan: Plan
    created_at_ms: int
    suspended_at_ms: int | None = None
    closed_at_ms: int | None = None

    @property
    def state(self) -> str:
        """`active`, `suspended` (its keys are refused until it is resumed) or `closed` (for good)."""
        if self.closed_at_ms is not None:
            return "closed"
        return "active" if self.suspended_at_ms is None else "suspended"

    def check_open(self) -> None:
        """Raise Conflict for a closed account."""
        if self.closed_at_ms is not None:
            raise Conflict(f"Account {self.name!r} is closed for good; add another account.")


def check_account_name(name: str) -> None:
    """Raise Invalid unless `name` can name an account: never digits alone, which would look like an id."""
    if _NAME.match(name) is None:
        raise Invalid(
            "name",
            f"{name!r} can't name an account: use 1 to 64 letters (A to Z), digits, dots, dashes or"
            " underscores, and not digits alone.",
        )


def can_begin_name(text: str) -> bool:
    """Whether a name may begin with it; the empty text begins all."""
    return _BEGINNING.fullmatch(text) is not None


def read_account_id(reference: str) -> int | None:
    """The id that a reference to an account gives in digits; None when it gives a name."""
    by_id = reference.isascii() and reference.isdigit() and len(reference) < 19
    return int(reference) if by_id else None


class AccountQuery(msgspec.Struct, frozen=True):
    """The accounts to list, by name without regard to case: at most `limit`, after the name `after`.

    `search` is the beginning of a name in any case. In digits it is also an id, whose account comes first and
    is not counted. `state` is one of STATES.
    """

    limit: int
    search: str = ""
    state: str | None = None
    plan: str | None = None
    after: str = ""


class AccountUse(msgspec.Struct, frozen=True):
    """An account and its requests on the current UTC day, as last written: about a second ago at most."""

    account: Account
    used_today: int

    @property
    def id(self) -> int:
        return self.account.id


class AccountPage(msgspec.Struct, frozen=True):
    """The next page begins after the name `next_start`; None at the end.

    One may follow a page that is not full: a scan reads a bounded number of accounts.
    """

    accounts: list[AccountUse]
    next_start: str | None
