"""People who use the console: their roles, and the protocol of their store. Sessions: sign_ins.py."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

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
    """Somebody who uses the console. Without a password only a one-time link lets them in."""

    id: int
    name: str
    role: Role
    has_password: bool
    created_at_ms: int
    disabled_at_ms: int | None = None

    @property
    def actor(self) -> str:
        """Who makes the person's changes, for the journal."""
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
    """Whether somebody may have this name. One of digits would look like an id, and browsers take one of dots
    out of an address."""
    return _NAME.fullmatch(text) is not None


def check_person_name(name: str) -> None:
    """Raise Invalid unless `name` can name a person."""
    if not is_person_name(name):
        raise Invalid(
            "name",
            f"{name!r} can't name a person: use 1 to 64 letters, digits, dots, dashes or underscores,"
            " with a letter among them.",
        )


class PeopleRepository(Protocol):
    """People in a store. Each method is one transaction and may raise StoreUnavailable.

    `actor` is kept in the journal. Methods that take a name raise PersonNotFound. Where `keeps_operator`,
    they raise Conflict instead of leaving no operator who can sign in.
    """

    async def add(self, name: str, role: Role, actor: str) -> SignInLink:
        """A new person, and the link to come in. Raises Invalid for a bad name, Conflict for a taken one."""
        ...

    async def find(self, name: str) -> Person: ...

    async def all(self) -> list[Person]:
        """By name."""
        ...

    async def names(self, ids: Iterable[int]) -> dict[int, str]:
        """The names of people by id, of those that there are."""
        ...

    async def disable(self, name: str, actor: str, *, keeps_operator: bool = True) -> Person:
        """End all sessions and links, and let the person in no more."""
        ...

    async def enable(self, name: str, actor: str) -> Person:
        """Let a disabled person in again, with the password of before."""
        ...

    async def set_role(
        self, name: str, role: Role, actor: str, *, keeps_operator: bool = True, expected: Role | None = None
    ) -> Person:
        """Acts on the person's next request. Raises Conflict for one who has neither the expected role nor
        this one."""
        ...

    async def reset(self, name: str, actor: str) -> SignInLink:
        """End all sessions and links, remove the password, and make a new link.

        Raises Conflict for a disabled person.
        """
        ...
