"""Links, sessions and attempts of people, for both databases. The tables have digests of tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from petstore.core.client_address import network_of
from petstore.core.durations import MINUTE_MS
from petstore.core.errors import LinkGone, StoreUnavailable
from petstore.core.people import Person, SignInLink, is_person_name
from petstore.core.sign_ins import (
    LINK_VALID_MS,
    SESSION_IDLE_MS,
    SESSION_MAX_MS,
    SESSIONS_MAX,
    PersonSession,
    SignInAttempt,
    new_sign_in_token,
    token_digest,
)
from petstore.transactions.journal import record
from petstore.transactions.people import (
    END_SESSIONS,
    ENDS_ACCESS,
    PERSON_COLUMNS,
    SET_PASSWORD,
    end_access,
    read_person,
    with_password,
)
from petstore.transactions.rows import PERSON
from petstore.transactions.script import (
    NO_EFFECT,
    Database,
    Repository,
    Script,
    read,
    remove_all,
    rows_of,
    statement,
    write,
)
from petstore.transactions.sign_in_attempts import (
    KNOW_NETWORK,
    OLD_ATTEMPTS,
    OLD_NETWORKS,
    count_attempt,
    give_back,
    read_attempt,
)

_SESSIONS = (
    f"SELECT {PERSON_COLUMNS}, s.digest, s.address, s.created_at_ms, s.used_at_ms FROM sessions s"
    " JOIN people p ON p.id = s.person_id"
)
_SESSION = statement(f"{_SESSIONS} WHERE s.digest = $1")
_SESSIONS_OF = statement(f"{_SESSIONS} WHERE s.person_id = $1 ORDER BY s.used_at_ms DESC")
_NEWEST_SESSIONS = statement(
    f"{_SESSIONS} WHERE s.used_at_ms > $1 AND s.created_at_ms > $2 ORDER BY s.used_at_ms DESC LIMIT $3"
)
_OPEN = statement(
    "INSERT INTO sessions (digest, person_id, address, created_at_ms, used_at_ms) VALUES ($1, $2, $3, $4, $4)"
)
_MAKE_ROOM = statement(
    "DELETE FROM sessions WHERE person_id = $1 AND digest NOT IN (SELECT digest FROM sessions"
    f" WHERE person_id = $1 ORDER BY used_at_ms DESC LIMIT {SESSIONS_MAX - 1})"
)
_NOTE_USE = statement("UPDATE sessions SET used_at_ms = $2 WHERE digest = $1 AND used_at_ms < $2")
_END = statement("DELETE FROM sessions WHERE digest = $1 AND person_id = $2")
_END_BY_TOKEN = statement("DELETE FROM sessions WHERE digest = $1")
# A link of a clock that was far ahead counts as expired. Here and below the sum is on the column's side:
# PostgreSQL takes a parameter beside a number for an integer of 32 bits.
_IS_VALID = f"expires_at_ms > $2 AND expires_at_ms - {2 * LINK_VALID_MS} < $2"
_LINK = statement(
    f"SELECT {PERSON_COLUMNS}, l.expires_at_ms FROM sign_in_links l JOIN people p ON p.id = l.person_id"
    f" WHERE l.digest = $1 AND {_IS_VALID} AND p.disabled_at_ms IS NULL"
)
_USE_LINK = statement(f"DELETE FROM sign_in_links WHERE digest = $1 AND {_IS_VALID} RETURNING person_id")
_END_ALL = tuple(
    statement(f"DELETE FROM {table}") for table in ("sessions", "sign_in_links", "sign_in_tries")
)
# In the order of `end_access`: two that lock the same rows in two orders wait for each other.
_REMOVE_OLD = (
    statement("DELETE FROM sign_in_links WHERE expires_at_ms < $1"),
    *OLD_NETWORKS,
    statement(
        f"DELETE FROM sessions WHERE used_at_ms + {SESSION_IDLE_MS} < $1"
        f" OR created_at_ms + {SESSION_MAX_MS} < $1"
    ),
)
# How often the use of a session is written at most.
_NOTED_EVERY_MS = MINUTE_MS


def _confirm(now_ms: int, attempt: SignInAttempt) -> Script[Person | None]:
    """The person of a right password, whose row stays locked. None if they were disabled or the password was
    replaced while it was compared."""
    if attempt.person is None:
        return None
    person, stored = yield from with_password(attempt.person.id)
    if stored is None or stored != attempt.stored or person.disabled_at_ms is not None:
        return None
    yield from give_back(now_ms, attempt, person.id)
    return person


def _replace_password(now_ms: int, person: Person, stored: str, address: str) -> Script[str]:
    """Set a password's hash, end all sessions and links, open a session; its token."""
    yield SET_PASSWORD, (person.id, stored)
    yield from end_access(person.id)
    token = yield from _open(now_ms, person, address)
    yield KNOW_NETWORK, (person.id, network_of(address), now_ms)
    before, after = {"hasPassword": person.has_password}, {"hasPassword": True}
    yield from record(now_ms, person.actor, "person", person.id, "password_set", before, after)
    return token


def _open(now_ms: int, person: Person, address: str) -> Script[str]:
    token = new_sign_in_token()
    yield _MAKE_ROOM, (person.id,)
    yield _OPEN, (token_digest(token), person.id, address, now_ms)
    return token


def _read_session(row: Any) -> PersonSession:
    digest, *rest = row[len(PERSON) :]
    return PersonSession(bytes(digest).hex(), read_person(row[: len(PERSON)]), *rest)


def end_all_access() -> Script[None]:
    """End sessions and links in the copy of a database: those that ended since must not come back."""
    for each in _END_ALL:
        yield each, ()


async def purge_sign_ins(database: Database, now_ms: int) -> None:
    """Delete sessions, links and attempts that have ended by time, and networks of no sign-in for 30 days."""

    def delete() -> Script[None]:
        for old in _REMOVE_OLD:
            yield old, (now_ms,)

    await database.write(delete)
    await remove_all(database, OLD_ATTEMPTS, now_ms)


class SignIns(Repository):
    """The links, sessions and attempts of a store."""

    async def take_attempt(self, name: str, address: str) -> SignInAttempt:
        """Count an attempt before its password is compared. Raises TooManyTries, and then counts nothing."""
        now_ms = self._clock.now_ms()
        # Read first: a refused storm waits for no lock.
        attempt = await self._database.read(read_attempt(now_ms, name, is_person_name(name), address))
        return await self._database.write(lambda: count_attempt(now_ms, attempt))

    @write(NO_EFFECT)
    def accept(
        self, now_ms: int, attempt: SignInAttempt, address: str, rehashed: str | None = None
    ) -> Script[str | None]:
        """Open a session after a right password, and give its attempt back. Returns the session's token.

        None if the person was disabled, or the password replaced, while it was compared. `rehashed` replaces
        the hash.
        """
        if not (person := (yield from _confirm(now_ms, attempt))):
            return None
        if rehashed is not None:
            yield SET_PASSWORD, (person.id, rehashed)
        return (yield from _open(now_ms, person, address))

    @write(ENDS_ACCESS)
    def change_password(
        self, now_ms: int, attempt: SignInAttempt, password: str, address: str
    ) -> Script[str | None]:
        """Set, after the right current password, a new one (its hash), end all sessions and open a new one.
        Returns the new session's token.

        None as with `accept`.
        """
        if not (person := (yield from _confirm(now_ms, attempt))):
            return None
        return (yield from _replace_password(now_ms, person, password, address))

    @read
    def link(self, token: str) -> Script[SignInLink]:
        """A valid link, which stays valid. Raises LinkGone."""
        for row in (yield _LINK, (token_digest(token), self._clock.now_ms())):
            return SignInLink(read_person(row[: len(PERSON)]), token, row[len(PERSON)])
        raise LinkGone

    @write(NO_EFFECT)
    def redeem(self, now_ms: int, token: str, password: str, address: str) -> Script[str]:
        """Use a link: set the password (its hash), end all sessions and open a new one. Returns its token.
        Raises LinkGone.

        Of several calls at once the one that deletes the row has the link.
        """
        rows = yield _USE_LINK, (token_digest(token), now_ms)
        if not rows:
            raise LinkGone
        person, _ = yield from with_password(rows[0][0])
        if person.disabled_at_ms is not None:
            raise LinkGone
        return (yield from _replace_password(now_ms, person, password, address))

    async def session(self, token: str, *, unattended: bool = False) -> PersonSession | None:
        """The session of a token; None if it has ended, or its person is disabled.

        Its use is written, at most once a minute; not that of a page's own refresh, `unattended`.
        """
        digest, now_ms = token_digest(token), self._clock.now_ms()
        rows = await self._database.read(rows_of(_SESSION, digest))
        found = _read_session(rows[0]) if rows else None
        if found is None or found.person.disabled_at_ms is not None or found.has_ended(now_ms):
            return None
        if not unattended and now_ms - found.used_at_ms >= _NOTED_EVERY_MS:
            with contextlib.suppress(StoreUnavailable):  # pages are shown on a full disk too
                await self._database.write(lambda: rows_of(_NOTE_USE, digest, now_ms))
        return found

    @read
    def sessions_of(self, person_id: int) -> Script[list[PersonSession]]:
        """A person's sessions, newest use first."""
        return self._alive((yield _SESSIONS_OF, (person_id,)))

    @read
    def sessions(self, limit: int) -> Script[list[PersonSession]]:
        """The sessions of all people, newest use first, at most `limit`."""
        now_ms = self._clock.now_ms()
        bounds = now_ms - SESSION_IDLE_MS, now_ms - SESSION_MAX_MS
        return self._alive((yield _NEWEST_SESSIONS, (*bounds, limit)))

    @write(ENDS_ACCESS)
    def end_session(self, now_ms: int, person_id: int, session_id: str) -> Script[None]:
        """End a person's session, if there is one with this id."""
        try:
            digest = bytes.fromhex(session_id)
        except ValueError:
            return
        yield _END, (digest, person_id)

    @write(ENDS_ACCESS)
    def end_session_of(self, now_ms: int, token: str) -> Script[None]:
        """End the session of a token."""
        yield _END_BY_TOKEN, (token_digest(token),)

    @write(ENDS_ACCESS)
    def end_sessions(self, now_ms: int, person: Person, actor: str) -> Script[int]:
        """End all sessions of a person; their number."""
        ended: int = len((yield END_SESSIONS, (person.id,)))
        if ended:
            yield from record(now_ms, actor, "person", person.id, "signed_out", None, {"sessions": ended})
        return ended

    def _alive(self, rows: Iterable[Any]) -> list[PersonSession]:
        now_ms = self._clock.now_ms()
        return [session for session in map(_read_session, rows) if not session.has_ended(now_ms)]
