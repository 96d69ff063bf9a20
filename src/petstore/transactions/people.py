"""People, for both databases. What lets them in is in sign_ins.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from petstore.core.clock import Clock
from petstore.core.errors import Conflict, PersonNotFound
from petstore.core.people import Person, Role, SignInLink, check_person_name
from petstore.core.sign_ins import LINK_VALID_MS, new_token, token_digest
from petstore.transactions.journal import record
from petstore.transactions.rows import PERSON
from petstore.transactions.script import Database, Effect, Script, names_of, statement

PERSON_COLUMNS = ", ".join(f"p.{column}" for column in PERSON)
PASSWORD_AT = PERSON.index("password")
_ALL = statement(f"SELECT {PERSON_COLUMNS} FROM people p ORDER BY p.name")
_BY_NAME = statement(f"SELECT {PERSON_COLUMNS} FROM people p WHERE p.name = $1", lock=" FOR NO KEY UPDATE")
_BY_ID = statement(f"SELECT {PERSON_COLUMNS} FROM people p WHERE p.id = $1", lock=" FOR NO KEY UPDATE")
_OPERATORS = statement(
    "SELECT id, password IS NOT NULL FROM people WHERE role = 'operator' AND disabled_at_ms IS NULL"
    " ORDER BY id",
    lock=" FOR NO KEY UPDATE",
)
_ADD = statement(
    "INSERT INTO people (name, role, created_at_ms) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING"
    " RETURNING id"
)
_SET_ROLE = statement("UPDATE people SET role = $2 WHERE id = $1")
_SET_DISABLED = statement("UPDATE people SET disabled_at_ms = $2 WHERE id = $1")
_SET_PASSWORD = statement("UPDATE people SET password = $2 WHERE id = $1")
_ADD_LINK = statement(
    "INSERT INTO sign_in_links (digest, person_id, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4)"
)
_END_LINKS = statement("DELETE FROM sign_in_links WHERE person_id = $1")
END_SESSIONS = statement("DELETE FROM sessions WHERE person_id = $1 RETURNING person_id")
_FORGET_NETWORKS = statement("DELETE FROM known_addresses WHERE person_id = $1")
# It may use the room that is kept back on a full disk.
ENDS_ACCESS = Effect(ends_access=True)


def read_person(row: Sequence[Any]) -> Person:
    """Of the columns PERSON; the password does not leave the store with it."""
    person_id, name, role, password, created_at_ms, disabled_at_ms = row
    return Person(person_id, name, Role(role), password is not None, created_at_ms, disabled_at_ms)


def find_person(name: str) -> Script[Person]:
    """A person, whose row a transaction locks until its end. Raises PersonNotFound."""
    if name.isascii() and name.isprintable():  # PostgreSQL refuses some other text, such as U+0000
        for row in (yield _BY_NAME, (name,)):
            return read_person(row)
    raise PersonNotFound(name)


def with_password(person_id: int) -> Script[tuple[Person, str | None]]:
    """A person and the hash of their password; a transaction locks the row until its end."""
    ((*row,),) = yield _BY_ID, (person_id,)
    return read_person(row), row[PASSWORD_AT]


def all_people() -> Script[list[Person]]:
    """Everybody, by name."""
    return [read_person(row) for row in (yield _ALL, ())]


def add_person(name: str, role: Role, token: str, actor: str, now_ms: int) -> Script[SignInLink]:
    """Raises Conflict when somebody has the name."""
    rows = yield _ADD, (name, role.value, now_ms)
    if not rows:
        raise Conflict(f"There is a person {name!r} already; choose another name.")
    added = Person(rows[0][0], name, role, False, now_ms)
    yield from record(now_ms, actor, "person", added.id, "added", None, {"name": name, "role": role})
    return (yield from _add_link(added, token, now_ms))


def disable(name: str, actor: str, now_ms: int, keeps_operator: bool) -> Script[Person]:
    """Raises PersonNotFound and Conflict. The first time stays."""
    person = yield from _find_sparing(name, keeps_operator)
    if person.disabled_at_ms is not None:
        return person
    yield _SET_DISABLED, (person.id, now_ms)
    yield from end_access(person.id)
    return (
        yield from _record_state(person, replace(person, disabled_at_ms=now_ms), "disabled", actor, now_ms)
    )


def enable(name: str, actor: str, now_ms: int) -> Script[Person]:
    """Raises PersonNotFound."""
    person = yield from find_person(name)
    if person.disabled_at_ms is None:
        return person
    yield _SET_DISABLED, (person.id, None)
    return (yield from _record_state(person, replace(person, disabled_at_ms=None), "enabled", actor, now_ms))


def set_role(
    name: str, role: Role, actor: str, now_ms: int, keeps_operator: bool, expected: Role | None
) -> Script[Person]:
    """Raises PersonNotFound and Conflict."""
    person = yield from _find_sparing(name, keeps_operator and role is not Role.OPERATOR)
    if person.role is role:
        return person
    if expected not in (None, person.role):
        raise Conflict(f"{name} has the role {person.role} now. Repeat the change to replace it.")
    yield _SET_ROLE, (person.id, role.value)
    before, after = {"role": person.role}, {"role": role}
    yield from record(now_ms, actor, "person", person.id, "role_changed", before, after)
    return replace(person, role=role)


def reset(name: str, token: str, actor: str, now_ms: int) -> Script[SignInLink]:
    """Raises PersonNotFound and Conflict."""
    person = yield from find_person(name)
    if person.disabled_at_ms is not None:
        raise Conflict(f"{name!r} is disabled; enable them first.")
    yield _SET_PASSWORD, (person.id, None)
    yield from end_access(person.id)
    before, after = {"hasPassword": person.has_password}, {"hasPassword": False}
    yield from record(now_ms, actor, "person", person.id, "reset", before, after)
    return (yield from _add_link(replace(person, has_password=False), token, now_ms))


def set_password(person_id: int, stored: str) -> Script[None]:
    yield _SET_PASSWORD, (person_id, stored)


def end_access(person_id: int) -> Script[None]:
    """End all sessions and links, and forget the networks that the person signed in from."""
    yield _END_LINKS, (person_id,)
    yield _FORGET_NETWORKS, (person_id,)
    yield END_SESSIONS, (person_id,)


def _find_sparing(name: str, keeps_operator: bool) -> Script[Person]:
    """A person who is not the last operator. Raises PersonNotFound and Conflict.

    Who was invited and never came counts only while nobody has come. All operators are locked, in one order:
    two of them can't disable each other at the same time.
    """
    operators = (yield _OPERATORS, ()) if keeps_operator else []
    came = [person_id for person_id, has_password in operators if has_password]
    person = yield from find_person(name)
    if (came or [person_id for person_id, _ in operators]) == [person.id]:
        raise Conflict(
            f"{name!r} is the only operator who can sign in. Make somebody else an operator first,"
            " and let them sign in."
        )
    return person


def _add_link(person: Person, token: str, now_ms: int) -> Script[SignInLink]:
    expires_at_ms = now_ms + LINK_VALID_MS
    yield _ADD_LINK, (token_digest(token), person.id, now_ms, expires_at_ms)
    return SignInLink(person, token, expires_at_ms)


def _record_state(before: Person, after: Person, action: str, actor: str, now_ms: int) -> Script[Person]:
    states = {"state": before.state}, {"state": after.state}
    yield from record(now_ms, actor, "person", before.id, action, *states)
    return after


class People:
    """Implements people.PeopleRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, name: str, role: Role, actor: str) -> SignInLink:
        check_person_name(name)
        token, now_ms = new_token(), self._clock.now_ms()
        return await self._database.write(lambda: add_person(name, role, token, actor, now_ms))

    async def find(self, name: str) -> Person:
        return await self._database.read(find_person(name))

    async def all(self) -> list[Person]:
        return await self._database.read(all_people())

    async def names(self, ids: Iterable[int]) -> dict[int, str]:
        return await self._database.read(names_of("people", tuple(ids)))

    async def disable(self, name: str, actor: str, *, keeps_operator: bool = True) -> Person:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: disable(name, actor, now_ms, keeps_operator), ENDS_ACCESS)

    async def enable(self, name: str, actor: str) -> Person:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: enable(name, actor, now_ms))

    async def set_role(
        self, name: str, role: Role, actor: str, *, keeps_operator: bool = True, expected: Role | None = None
    ) -> Person:
        now_ms = self._clock.now_ms()
        return await self._database.write(
            lambda: set_role(name, role, actor, now_ms, keeps_operator, expected)
        )

    async def reset(self, name: str, actor: str) -> SignInLink:
        token, now_ms = new_token(), self._clock.now_ms()
        return await self._database.write(lambda: reset(name, token, actor, now_ms), ENDS_ACCESS)
