"""Signing in to the console: one-time links, sessions, and two budgets of wrong passwords.

A try is counted before its password is compared. A right one gives its try back.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Protocol

import msgspec

from petstore.core.digests import digest
from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS
from petstore.core.people import Person, SignInLink

LINK_VALID_MS = DAY_MS
SESSION_IDLE_MS = 12 * HOUR_MS
SESSION_MAX_MS = 7 * DAY_MS
SESSIONS_MAX = 20  # of a person; the next one ends the one that was unused for longest
NETWORK_KNOWN_MS = 30 * DAY_MS  # after a person's last sign-in there
_TOKEN_BYTES = 32


class Budget(msgspec.Struct, frozen=True):
    """How many wrong tries fit into a window, which opens with the first."""

    tries: int
    window_ms: int


# A name from a network. An attacker in another network can't spend it.
PAIR = Budget(5, 15 * MINUTE_MS)
# All names from networks that their person has not signed in from, together. It bounds guesses from many
# networks, and the CPU time of hashes. Where a person usually signs in it does not count.
NEW_NETWORKS = Budget(100, HOUR_MS)
NEW_NETWORKS_SUBJECT = "new networks"


class PersonSession(msgspec.Struct, frozen=True):
    """A session that has not ended. `address` is where it began; `id` lets nobody in."""

    id: str
    person: Person
    address: str
    created_at_ms: int
    used_at_ms: int

    def has_ended(self, now_ms: int) -> bool:
        """By its age, or because nobody used it; also one of a clock that was far ahead, which would last."""
        idle_ms, age_ms = abs(now_ms - self.used_at_ms), abs(now_ms - self.created_at_ms)
        return idle_ms >= SESSION_IDLE_MS or age_ms >= SESSION_MAX_MS


class Presence(msgspec.Struct, frozen=True):
    """Somebody who is signed in: when the oldest of these sessions began, and when one was used last."""

    person: Person
    sessions: int
    since_ms: int
    seen_ms: int


def present(sessions: Iterable[PersonSession]) -> list[Presence]:
    """Who has these sessions, in the order in which each person comes first."""
    found: dict[int, Presence] = {}
    for session in sessions:
        person = session.person
        known = found.get(person.id)
        if known is None:
            found[person.id] = Presence(person, 1, session.created_at_ms, session.used_at_ms)
        else:
            since_ms = min(known.since_ms, session.created_at_ms)
            found[person.id] = msgspec.structs.replace(known, sessions=known.sessions + 1, since_ms=since_ms)
    return list(found.values())


class Taken(msgspec.Struct, frozen=True):
    """One try in a window. `opened_ms` is 0 before it is counted."""

    subject: str
    budget: Budget
    opened_ms: int = 0


class Attempt(msgspec.Struct, frozen=True):
    """A try. `taken` has the windows that count it, the pair's first.

    `stored` is the hash to compare with: None for an unknown name and for a person without a password.
    """

    person: Person | None
    stored: str | None
    network: str
    taken: tuple[Taken, ...]


def new_token() -> str:
    """256 random bits, for a session or a link."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def token_digest(token: str) -> bytes:
    """What the store keeps of a token."""
    return digest(token.encode())


def link_address(base: str, link: SignInLink) -> str:
    """Where the link leads; `base` is the address of the service, without a slash at the end."""
    return f"{base}/console/link/{link.token}"


def pair_subject(name: str, network: str) -> str:
    """What the pair's window is stored under. The name is a digest: people type passwords into its field."""
    return f"pair {digest(name.encode()).hex()[:32]} {network}"


class SignInRepository(Protocol):
    """Links, sessions and tries in a store. Each method is one transaction and may raise StoreUnavailable."""

    async def take_try(self, name: str, address: str) -> Attempt:
        """Count a try before its password is compared. Raises TooManyTries, and then counts nothing."""
        ...

    async def accept(self, attempt: Attempt, address: str, rehashed: str | None = None) -> str | None:
        """Open a session after a right password, and give the try back; the session's token.

        None when the person was disabled, or got another password, meanwhile. `rehashed` replaces the hash.
        """
        ...

    async def link(self, token: str) -> SignInLink:
        """A link that can be used. Uses nothing. Raises LinkGone."""
        ...

    async def redeem(self, token: str, password: str, address: str) -> str:
        """Use a link: set the password (its hash), end all sessions, open one; its token. Raises LinkGone."""
        ...

    async def change_password(self, attempt: Attempt, password: str, address: str) -> str | None:
        """After the right password of before: set another (its hash), end all sessions, open one; its token.

        None as with `accept`.
        """
        ...

    async def session(self, token: str, *, unattended: bool = False) -> PersonSession | None:
        """The session of a token; None when it has ended, or its person is disabled.

        Its use is noted, at most once a minute; not what a page asks for by itself, `unattended`.
        """
        ...

    async def sessions_of(self, person_id: int) -> list[PersonSession]:
        """Newest use first."""
        ...

    async def sessions(self, limit: int) -> list[PersonSession]:
        """Those of everybody that have not ended, newest use first: at most `limit`."""
        ...

    async def end_session(self, person_id: int, session_id: str) -> None:
        """Nothing happens when it has ended."""
        ...

    async def end_session_of(self, token: str) -> None:
        """End the session of a token."""
        ...

    async def end_sessions(self, person: Person, actor: str) -> int:
        """End all sessions of a person; how many there were."""
        ...
