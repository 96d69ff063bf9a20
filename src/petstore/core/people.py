"""People who use the console: their roles and sessions, and the protocol of their store."""

from __future__ import annotations

import hashlib
import re
import secrets
from enum import StrEnum
from typing import Protocol

import msgspec

from petstore.core.durations import DAY_MS, HOUR_MS
from petstore.core.errors import Invalid

SESSION_IDLE_MS = 12 * HOUR_MS
SESSION_MAX_MS = 7 * DAY_MS
_TOKEN_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


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


class PersonSession(msgspec.Struct, frozen=True):
    """A session that has not ended. `address` is where it began."""

    person: Person
    address: str
    created_at_ms: int
    used_at_ms: int


def new_token() -> str:
    """256 random bits, for a session or a link."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def token_digest(token: str) -> bytes:
    """What the store keeps of a token. A slow hash is for secrets with little entropy."""
    return hashlib.sha256(token.encode()).digest()


def check_person_name(name: str) -> None:
    """Raise Invalid unless `name` can name a person."""
    if _NAME.fullmatch(name) is None:
        raise Invalid(
            "name",
            f"{name!r} can't name a person: use 1 to 64 letters, digits, dots, dashes or underscores.",
        )


class PeopleRepository(Protocol):
    """People in a store. Each method is one transaction and may raise StoreUnavailable.

    `actor` is kept in the journal.
    """

    async def add(self, name: str, role: Role, actor: str) -> Person:
        """Raises Invalid for what can't be a name, and Conflict when somebody has it."""
        ...

    async def all(self) -> list[Person]:
        """By name."""
        ...

    async def open_session(self, person_id: int, address: str) -> str:
        """A new session; its token, which the store does not keep."""
        ...

    async def session(self, token: str) -> PersonSession | None:
        """The session of a token; None when it has ended, or its person is disabled. Notes its use."""
        ...

    async def end_session(self, token: str) -> None: ...
