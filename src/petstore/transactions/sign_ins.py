"""Links and sessions of people, for both databases. Of their tokens the tables have digests."""

from __future__ import annotations

import contextlib
from typing import Any

from petstore.core.client_address import network_of
from petstore.core.clock import Clock
from petstore.core.durations import MINUTE_MS
from petstore.core.errors import LinkGone, StoreUnavailable
from petstore.core.people import Person, SignInLink, is_person_name
from petstore.core.sign_ins import (
    LINK_VALID_MS,
    SESSION_IDLE_MS,
    SESSION_MAX_MS,
    SESSIONS_MAX,
    Attempt,
    PersonSession,
    new_token,
    token_digest,
)
from petstore.transactions.journal import record
from petstore.transactions.people import (
    END_SESSIONS,
    ENDS_ACCESS,
    PERSON_COLUMNS,
    end_access,
    read_person,
    set_password,
    with_password,
)
from petstore.transactions.rows import PERSON
from petstore.transactions.script import Database, Script, statement
from petstore.transactions.tries import count_try, give_back, know_network, purge_tries, read_try

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
# Not one of a clock that was far ahead, which would last. Here and below the column's side is summed, since
# PostgreSQL would take a parameter beside a number for an integer of 32 bits.
_LASTS = f"expires_at_ms > $2 AND expires_at_ms - {2 * LINK_VALID_MS} < $2"
_LINK = statement(
    f"SELECT {PERSON_COLUMNS}, l.expires_at_ms FROM sign_in_links l JOIN people p ON p.id = l.person_id"
    f" WHERE l.digest = $1 AND {_LASTS} AND p.disabled_at_ms IS NULL"
)
_USE_LINK = statement(f"DELETE FROM sign_in_links WHERE digest = $1 AND {_LASTS} RETURNING person_id")
_END_ALL = tuple(
    statement(f"DELETE FROM {table}") for table in ("sessions", "sign_in_links", "sign_in_tries")
)
_PURGE_SESSIONS = statement(
    f"DELETE FROM sessions WHERE used_at_ms + {SESSION_IDLE_MS} < $1 OR created_at_ms + {SESSION_MAX_MS} < $1"
)
_PURGE_LINKS = statement("DELETE FROM sign_in_links WHERE expires_at_ms < $1")
# A session's use is written so often, not with each request.
_NOTED_EVERY_MS = MINUTE_MS


def accept(attempt: Attempt, token: str, address: str, rehashed: str | None, now_ms: int) -> Script[bool]:
    """See core.sign_ins. False when the password is not the person's any more."""
    if not (person := (yield from _confirm(attempt, now_ms))):
        return False
    if rehashed is not None:
        yield from set_password(person.id, rehashed)
    yield from _open(person, token, address, now_ms)
    return True


def change_password(attempt: Attempt, stored: str, token: str, address: str, now_ms: int) -> Script[bool]:
    """See core.sign_ins. False when the password of before is not the person's any more."""
    if not (person := (yield from _confirm(attempt, now_ms))):
        return False
    yield from _set_first_or_other_password(person, stored, token, address, now_ms)
    return True


def find_link(token: str, now_ms: int) -> Script[SignInLink]:
    """Raises LinkGone."""
    for row in (yield _LINK, (token_digest(token), now_ms)):
        return SignInLink(read_person(row[: len(PERSON)]), token, row[len(PERSON)])
    raise LinkGone


def redeem(link: str, stored: str, token: str, address: str, now_ms: int) -> Script[None]:
    """Of several at once the one that deletes the row has the link. Raises LinkGone."""
    rows = yield _USE_LINK, (token_digest(link), now_ms)
    if not rows:
        raise LinkGone
    person, _ = yield from with_password(rows[0][0])
    if person.disabled_at_ms is not None:
        raise LinkGone
    yield from _set_first_or_other_password(person, stored, token, address, now_ms)


def _confirm(attempt: Attempt, now_ms: int) -> Script[Person | None]:
    """The person of a right password, who is locked; None when they may not come in any more."""
    if attempt.person is None:
        return None
    person, stored = yield from with_password(attempt.person.id)
    if stored is None or stored != attempt.stored or person.disabled_at_ms is not None:
        return None
    yield from give_back(attempt, person.id, now_ms)
    return person


def _set_first_or_other_password(
    person: Person, stored: str, token: str, address: str, now_ms: int
) -> Script[None]:
    yield from set_password(person.id, stored)
    yield from end_access(person.id)
    yield from _open(person, token, address, now_ms)
    yield from know_network(person.id, network_of(address), now_ms)
    before, after = {"hasPassword": person.has_password}, {"hasPassword": True}
    yield from record(now_ms, person.actor, "person", person.id, "password_set", before, after)


def _open(person: Person, token: str, address: str, now_ms: int) -> Script[None]:
    yield _MAKE_ROOM, (person.id,)
    yield _OPEN, (token_digest(token), person.id, address, now_ms)


def find_session(digest: bytes) -> Script[PersonSession | None]:
    """Also one that has ended by its age."""
    for row in (yield _SESSION, (digest,)):
        return _read_session(row)
    return None


def sessions_of(person_id: int) -> Script[list[PersonSession]]:
    """Newest use first."""
    return [_read_session(row) for row in (yield _SESSIONS_OF, (person_id,))]


def newest_sessions(now_ms: int, limit: int) -> Script[list[PersonSession]]:
    """See core.sign_ins."""
    bounds = now_ms - SESSION_IDLE_MS, now_ms - SESSION_MAX_MS
    return [_read_session(row) for row in (yield _NEWEST_SESSIONS, (*bounds, limit))]


def _read_session(row: Any) -> PersonSession:
    digest, *rest = row[len(PERSON) :]
    return PersonSession(bytes(digest).hex(), read_person(row[: len(PERSON)]), *rest)


def end_sessions(person: Person, actor: str, now_ms: int) -> Script[int]:
    """How many there were."""
    ended: int = len((yield END_SESSIONS, (person.id,)))
    if ended:
        yield from record(now_ms, actor, "person", person.id, "signed_out", None, {"sessions": ended})
    return ended


def _note_use(digest: bytes, now_ms: int) -> Script[None]:
    yield _NOTE_USE, (digest, now_ms)


def _end_session(digest: bytes, person_id: int) -> Script[None]:
    yield _END, (digest, person_id)


def _end_by_token(digest: bytes) -> Script[None]:
    yield _END_BY_TOKEN, (digest,)


def end_all_access() -> Script[None]:
    """For the copy of a database: sessions and links that have ended since then must not come back."""
    for each in _END_ALL:
        yield each, ()


async def purge_sign_ins(database: Database, now_ms: int) -> None:
    """Delete sessions, links and tries that have ended by time."""

    def delete() -> Script[None]:
        yield _PURGE_SESSIONS, (now_ms,)
        yield _PURGE_LINKS, (now_ms,)

    await database.write(delete)
    await purge_tries(database, now_ms)


class SignIns:
    """Implements sign_ins.SignInRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def take_try(self, name: str, address: str) -> Attempt:
        now_ms = self._clock.now_ms()
        # Read first: a refused storm waits for no lock.
        attempt = await self._database.read(read_try(name, is_person_name(name), address, now_ms))
        return await self._database.write(lambda: count_try(attempt, now_ms))

    async def accept(self, attempt: Attempt, address: str, rehashed: str | None = None) -> str | None:
        token, now_ms = new_token(), self._clock.now_ms()
        done = await self._database.write(lambda: accept(attempt, token, address, rehashed, now_ms))
        return token if done else None

    async def change_password(self, attempt: Attempt, password: str, address: str) -> str | None:
        token, now_ms = new_token(), self._clock.now_ms()
        done = await self._database.write(
            lambda: change_password(attempt, password, token, address, now_ms), ENDS_ACCESS
        )
        return token if done else None

    async def link(self, token: str) -> SignInLink:
        return await self._database.read(find_link(token, self._clock.now_ms()))

    async def redeem(self, token: str, password: str, address: str) -> str:
        session, now_ms = new_token(), self._clock.now_ms()
        await self._database.write(lambda: redeem(token, password, session, address, now_ms))
        return session

    async def session(self, token: str, *, unattended: bool = False) -> PersonSession | None:
        digest, now_ms = token_digest(token), self._clock.now_ms()
        found = await self._database.read(find_session(digest))
        if found is None or found.person.disabled_at_ms is not None or found.has_ended(now_ms):
            return None
        if not unattended and now_ms - found.used_at_ms >= _NOTED_EVERY_MS:
            with contextlib.suppress(StoreUnavailable):  # pages are shown on a full disk too
                await self._database.write(lambda: _note_use(digest, now_ms))
        return found

    async def sessions_of(self, person_id: int) -> list[PersonSession]:
        now_ms = self._clock.now_ms()
        found = await self._database.read(sessions_of(person_id))
        return [session for session in found if not session.has_ended(now_ms)]

    async def sessions(self, limit: int) -> list[PersonSession]:
        now_ms = self._clock.now_ms()
        found = await self._database.read(newest_sessions(now_ms, limit))
        return [session for session in found if not session.has_ended(now_ms)]

    async def end_session(self, person_id: int, session_id: str) -> None:
        try:
            digest = bytes.fromhex(session_id)
        except ValueError:
            return
        await self._database.write(lambda: _end_session(digest, person_id), ENDS_ACCESS)

    async def end_session_of(self, token: str) -> None:
        digest = token_digest(token)
        await self._database.write(lambda: _end_by_token(digest), ENDS_ACCESS)

    async def end_sessions(self, person: Person, actor: str) -> int:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: end_sessions(person, actor, now_ms), ENDS_ACCESS)
