"""Signing in to the console: one-time links, sessions, and two budgets of wrong passwords.

An attempt is counted before its password is compared. A right one gives its attempt back.
"""

from __future__ import annotations

import secrets

import msgspec

from petstore.core.digests import digest
from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS
from petstore.core.people import Person, SignInLink

LINK_VALID_MS = DAY_MS
SESSION_IDLE_MS = 12 * HOUR_MS
SESSION_MAX_MS = 7 * DAY_MS
SESSIONS_MAX = 20  # sessions a person may have; one more ends the least recently used
NETWORK_KNOWN_MS = 30 * DAY_MS  # after a person's last sign-in there
_TOKEN_BYTES = 32


class AttemptBudget(msgspec.Struct, frozen=True):
    """How many wrong attempts fit into a window, which opens with the first."""

    attempts: int
    window_ms: int


# A name from a network. An attacker in another network can't spend it.
PAIR = AttemptBudget(5, 15 * MINUTE_MS)
# All names from networks that their person has not signed in from, together. It bounds guesses from many
# networks, and the CPU time of hashes. Where a person usually signs in it does not count.
NEW_NETWORKS = AttemptBudget(100, HOUR_MS)
NEW_NETWORKS_SUBJECT = "new networks"


class PersonSession(msgspec.Struct, frozen=True):
    """A session. `address` is the client's when it began; `id` is public."""

    id: str
    person: Person
    address: str
    created_at_ms: int
    used_at_ms: int

    def has_ended(self, now_ms: int) -> bool:
        """Whether it expired, by age or inactivity. A timestamp far in the future (the clock was set back)
        counts as expired."""
        idle_ms, age_ms = abs(now_ms - self.used_at_ms), abs(now_ms - self.created_at_ms)
        return idle_ms >= SESSION_IDLE_MS or age_ms >= SESSION_MAX_MS


class CountedWindow(msgspec.Struct, frozen=True):
    """A window that counts an attempt. `opened_ms` is 0 before it does."""

    subject: str
    budget: AttemptBudget
    opened_ms: int = 0


class SignInAttempt(msgspec.Struct, frozen=True):
    """An attempt. `windows` are those that count it, the pair's first.

    `stored` is the hash to compare with: None for an unknown name and for a person without a password.
    """

    person: Person | None
    stored: str | None
    network: str
    windows: tuple[CountedWindow, ...]


def new_sign_in_token() -> str:
    """256 random bits, for a session, a link or the forms before a session."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def token_digest(token: str) -> bytes:
    """The digest under which the store has a token."""
    return digest(token.encode())


def link_address(base: str, link: SignInLink) -> str:
    """The address of a link; `base` is the service's, without a final slash."""
    return f"{base}/console/link/{link.token}"


def pair_subject(name: str, network: str) -> str:
    """What the pair's window is stored under. The name is a digest: people type passwords into its field."""
    return f"pair {digest(name.encode()).hex()[:32]} {network}"
