"""People, for both databases. Their links, sessions and tries are in sign_ins.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from petstore.core.contacts import check_addresses
from petstore.core.errors import Conflict, Invalid, PersonNotFound
from petstore.core.people import Person, Role, SignInLink, check_person_name
from petstore.core.sign_ins import LINK_VALID_MS, new_sign_in_token, token_digest
from petstore.core.zones import read_zone
from petstore.transactions.addresses import add_contacts
from petstore.transactions.journal import record
from petstore.transactions.rows import PERSON
from petstore.transactions.script import (
    NO_EFFECT,
    Effect,
    Repository,
    Script,
    names_of,
    read,
    reads,
    statement,
    write,
)

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
_SET_TIME_ZONE = statement("UPDATE people SET time_zone = $2 WHERE id = $1")
SET_PASSWORD = statement("UPDATE people SET password = $2 WHERE id = $1")
_ADD_LINK = statement(
    "INSERT INTO sign_in_links (digest, person_id, created_at_ms, expires_at_ms) VALUES ($1, $2, $3, $4)"
)
_END_LINKS = statement("DELETE FROM sign_in_links WHERE person_id = $1")
END_SESSIONS = statement("DELETE FROM sessions WHERE person_id = $1 RETURNING person_id")
_FORGET_NETWORKS = statement("DELETE FROM known_addresses WHERE person_id = $1")
# It may use the reserved space of a full disk.
ENDS_ACCESS = Effect(ends_access=True)


def read_person(row: Sequence[Any]) -> Person:
    """A person from the columns PERSON, without the password's hash."""
    person_id, name, role, password, *rest = row
    return Person(person_id, name, Role(role), password is not None, *rest)


def find_person(name: str) -> Script[Person]:
    """A person. A transaction locks the row until its end. Raises PersonNotFound."""
    if name.isascii() and name.isprintable():  # PostgreSQL refuses some other text, such as U+0000
        for row in (yield _BY_NAME, (name,)):
            return read_person(row)
    raise PersonNotFound(name)


def with_password(person_id: int) -> Script[tuple[Person, str | None]]:
    """A person and the hash of their password. A transaction locks the row until its end."""
    ((*row,),) = yield _BY_ID, (person_id,)
    return read_person(row), row[PASSWORD_AT]


def end_access(person_id: int) -> Script[None]:
    """End all sessions and links, and forget the networks that the person signed in from."""
    yield _END_LINKS, (person_id,)
    yield _FORGET_NETWORKS, (person_id,)
    yield END_SESSIONS, (person_id,)


def _find_sparing(name: str, keeps_operator: bool) -> Script[Person]:
    """A person who is not the last operator. Raises PersonNotFound and Conflict.

    Invited operators count only while no operator has signed in yet. All operators are locked, in one order:
    two of them can't disable each other at the same time.
    """
    operators = (yield _OPERATORS, ()) if keeps_operator else []
    signed_in = [person_id for person_id, has_password in operators if has_password]
    person = yield from find_person(name)
    if (signed_in or [person_id for person_id, _ in operators]) == [person.id]:
        raise Conflict(
            f"{name!r} is the only operator who can sign in. Make somebody else an operator first,"
            " and let them sign in."
        )
    return person


def _add_link(now_ms: int, person: Person) -> Script[SignInLink]:
    token, expires_at_ms = new_sign_in_token(), now_ms + LINK_VALID_MS
    yield _ADD_LINK, (token_digest(token), person.id, now_ms, expires_at_ms)
    return SignInLink(person, token, expires_at_ms)


def _record_state(now_ms: int, before: Person, after: Person, action: str, actor: str) -> Script[Person]:
    states = {"state": before.state}, {"state": after.state}
    yield from record(now_ms, actor, "person", before.id, action, *states)
    return after


class People(Repository):
    """The people of a store.

    `actor` is for the journal. Methods that take a name raise PersonNotFound. With `keeps_operator` they
    raise Conflict instead of leaving no operator who can sign in.
    """

    @write(NO_EFFECT, checks=True)
    def add(
        self, now_ms: int, name: str, role: Role, actor: str, *, addresses: Sequence[str] = ()
    ) -> Script[SignInLink]:
        """Add a person, with the addresses of their contacts; returns their link. Raises Invalid for a bad
        name and bad contacts, Conflict for a taken name."""
        check_person_name(name)
        check_addresses(addresses)
        rows = yield _ADD, (name, role.value, now_ms)
        if not rows:
            raise Conflict(f"There is a person {name!r} already; choose another name.")
        added = Person(rows[0][0], name, role, False, now_ms)
        yield from record(now_ms, actor, "person", added.id, "added", None, {"name": name, "role": role})
        yield from add_contacts(now_ms, "person", added.id, addresses, actor)
        return (yield from _add_link(now_ms, added))

    find = reads(find_person)

    @read
    def all(self) -> Script[list[Person]]:
        """All people, by name."""
        return [read_person(row) for row in (yield _ALL, ())]

    @read
    def names(self, ids: Iterable[int]) -> Script[dict[int, str]]:
        """The names of existing people by id."""
        return (yield from names_of("people", tuple(ids)))

    @write(ENDS_ACCESS)
    def disable(self, now_ms: int, name: str, actor: str, *, keeps_operator: bool = True) -> Script[Person]:
        """End all sessions and links, and refuse new ones. Keeps the time of an earlier call."""
        person = yield from _find_sparing(name, keeps_operator)
        if person.disabled_at_ms is not None:
            return person
        yield _SET_DISABLED, (person.id, now_ms)
        yield from end_access(person.id)
        disabled = replace(person, disabled_at_ms=now_ms)
        return (yield from _record_state(now_ms, person, disabled, "disabled", actor))

    @write(NO_EFFECT)
    def enable(self, now_ms: int, name: str, actor: str) -> Script[Person]:
        """Let a disabled person sign in again, with the same password."""
        person = yield from find_person(name)
        if person.disabled_at_ms is None:
            return person
        yield _SET_DISABLED, (person.id, None)
        enabled = replace(person, disabled_at_ms=None)
        return (yield from _record_state(now_ms, person, enabled, "enabled", actor))

    @write(NO_EFFECT)
    def set_role(
        self,
        now_ms: int,
        name: str,
        role: Role,
        actor: str,
        *,
        keeps_operator: bool = True,
        expected: Role | None = None,
    ) -> Script[Person]:
        """Acts on the person's next request. Raises Conflict for a person who has neither the expected role
        nor this one."""
        person = yield from _find_sparing(name, keeps_operator and role is not Role.OPERATOR)
        if person.role is role:
            return person
        if expected not in (None, person.role):
            raise Conflict(f"{name} has the role {person.role} now. Repeat the change to replace it.")
        yield _SET_ROLE, (person.id, role.value)
        before, after = {"role": person.role}, {"role": role}
        yield from record(now_ms, actor, "person", person.id, "role_changed", before, after)
        return replace(person, role=role)

    @write(NO_EFFECT)
    def set_time_zone(self, now_ms: int, name: str, zone: str | None, actor: str) -> Script[Person]:
        """Choose the person's own zone by its IANA name; None takes the choice back. Raises Invalid."""
        if zone is not None and read_zone(zone) is None:
            raise Invalid("time_zone", f"There is no time zone {zone!r}; write a name such as Europe/Berlin.")
        person = yield from find_person(name)
        if person.time_zone == zone:
            return person
        yield _SET_TIME_ZONE, (person.id, zone)
        before, after = {"timeZone": person.time_zone}, {"timeZone": zone}
        yield from record(now_ms, actor, "person", person.id, "changed", before, after)
        return replace(person, time_zone=zone)

    @write(ENDS_ACCESS)
    def reset(self, now_ms: int, name: str, actor: str) -> Script[SignInLink]:
        """End all sessions and links, remove the password, and add a new link.

        Raises Conflict for a disabled person.
        """
        person = yield from find_person(name)
        if person.disabled_at_ms is not None:
            raise Conflict(f"{name!r} is disabled; enable them first.")
        yield SET_PASSWORD, (person.id, None)
        yield from end_access(person.id)
        before, after = {"hasPassword": person.has_password}, {"hasPassword": False}
        yield from record(now_ms, actor, "person", person.id, "reset", before, after)
        return (yield from _add_link(now_ms, replace(person, has_password=False)))
