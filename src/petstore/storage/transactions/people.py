"""People and their sessions, for both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from petstore.core.clock import Clock
from petstore.core.durations import MINUTE_MS
from petstore.core.errors import Conflict
from petstore.core.people import (
    SESSION_IDLE_MS,
    SESSION_MAX_MS,
    Person,
    PersonSession,
    Role,
    check_person_name,
    new_token,
    token_digest,
)
from petstore.storage.rows import PERSON
from petstore.storage.transactions.journal import record
from petstore.storage.transactions.script import Database, Script, statement

_PERSON = ", ".join(f"p.{column}" for column in PERSON)
_ALL = statement(f"SELECT {_PERSON} FROM people p ORDER BY p.name")
_ADD = statement(
    "INSERT INTO people (name, role, created_at_ms) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING"
    " RETURNING id"
)
_OPEN = statement(
    "INSERT INTO sessions (digest, person_id, address, created_at_ms, used_at_ms) VALUES ($1, $2, $3, $4, $4)"
)
_SESSION = statement(
    f"SELECT {_PERSON}, s.address, s.created_at_ms, s.used_at_ms FROM sessions s"
    " JOIN people p ON p.id = s.person_id WHERE s.digest = $1"
)
_NOTE_USE = statement("UPDATE sessions SET used_at_ms = $2 WHERE digest = $1")
_END = statement("DELETE FROM sessions WHERE digest = $1")
# A session's use is written so often, not with each request.
_NOTED_EVERY_MS = MINUTE_MS


def _read_person(row: Sequence[Any]) -> Person:
    """Of the columns PERSON; the password does not leave the store with it."""
    person_id, name, role, password, created_at_ms, disabled_at_ms = row
    return Person(person_id, name, Role(role), password is not None, created_at_ms, disabled_at_ms)


def add_person(name: str, role: Role, actor: str, now_ms: int) -> Script[Person]:
    """Raises Conflict when somebody has the name."""
    rows = yield _ADD, (name, role.value, now_ms)
    if not rows:
        raise Conflict(f"There is a person {name!r} already; choose another name.")
    added = Person(rows[0][0], name, role, False, now_ms)
    yield from record(now_ms, actor, "person", added.id, "added", None, {"name": name, "role": role})
    return added


def all_people() -> Script[list[Person]]:
    """Everybody, by name."""
    return [_read_person(row) for row in (yield _ALL, ())]


def open_session(digest: bytes, person_id: int, address: str, now_ms: int) -> Script[None]:
    yield _OPEN, (digest, person_id, address, now_ms)


def find_session(digest: bytes) -> Script[PersonSession | None]:
    """Also one that has ended by its age."""
    for row in (yield _SESSION, (digest,)):
        return PersonSession(_read_person(row[: len(PERSON)]), *row[len(PERSON) :])
    return None


def _note_use(digest: bytes, now_ms: int) -> Script[None]:
    yield _NOTE_USE, (digest, now_ms)


def _end_session(digest: bytes) -> Script[None]:
    yield _END, (digest,)


class People:
    """Implements people.PeopleRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, name: str, role: Role, actor: str) -> Person:
        check_person_name(name)
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: add_person(name, role, actor, now_ms))

    async def all(self) -> list[Person]:
        return await self._database.read(all_people())

    async def open_session(self, person_id: int, address: str) -> str:
        token, now_ms = new_token(), self._clock.now_ms()
        digest = token_digest(token)
        await self._database.write(lambda: open_session(digest, person_id, address, now_ms))
        return token

    async def session(self, token: str) -> PersonSession | None:
        digest, now_ms = token_digest(token), self._clock.now_ms()
        found = await self._database.read(find_session(digest))
        if found is None or found.person.disabled_at_ms is not None:
            return None
        if now_ms - found.used_at_ms >= SESSION_IDLE_MS or now_ms - found.created_at_ms >= SESSION_MAX_MS:
            return None
        if now_ms - found.used_at_ms >= _NOTED_EVERY_MS:
            await self._database.write(lambda: _note_use(digest, now_ms))
        return found

    async def end_session(self, token: str) -> None:
        digest = token_digest(token)
        await self._database.write(lambda: _end_session(digest))
