"""People who use the console, and their roles. Sessions: sign_ins.py."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from petstore.core.errors import Invalid

_NAME = re.compile(r"(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9._-]{1,64}", re.ASCII)


class Role(StrEnum):
    """What a person may do in the console; each includes the ones before it."""

    VIEWER = "viewer"
    STAFF = "staff"
    OPERATOR = "operator"

    def includes(self, needed: Role) -> bool:
        """Whether a person of this role may do what takes `needed`."""
        return _RANK[self] >= _RANK[needed]


_RANK = {role: rank for rank, role in enumerate(Role)}


class Person(msgspec.Struct, frozen=True):
    """A user of the console. Without a password only a one-time link opens a session.

    `time_zone` is the IANA name of their own choice; None: the shop's.
    """

    id: int
    name: str
    role: Role
    has_password: bool
    created_at_ms: int
    disabled_at_ms: int | None = None
    time_zone: str | None = None

    @property
    def actor(self) -> str:
        """The author of the person's changes in the journal."""
        return f"console:{self.name}"

    @property
    def state(self) -> str:
        """`active`, `invited` (until a one-time link is used) or `disabled`."""
        if self.disabled_at_ms is not None:
            return "disabled"
        return "active" if self.has_password else "invited"


class SignInLink(msgspec.Struct, frozen=True):
    """A one-time link. Its token is shown once; `expires_at_ms` is a Unix time."""

    person: Person
    token: str
    expires_at_ms: int


def is_person_name(text: str) -> bool:
    """Whether `text` can name a person. A name of digits would look like an id; browsers remove one of dots
    from an address."""
    return _NAME.fullmatch(text) is not None


def check_person_name(name: str) -> None:
    """Raise Invalid unless `name` can name a person."""
    if not is_person_name(name):
        raise Invalid(
            "name",
            f"{name!r} can't name a person: use 1 to 64 letters (A to Z), digits, dots, dashes or"
            " underscores, with a letter among them.",
        )
