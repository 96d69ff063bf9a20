"""Contacts of accounts and people, for both databases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from petstore.core.accounts import Account
from petstore.core.contacts import CONTACTS_MAX, Contact, Subject, check_address, is_same
from petstore.core.errors import Conflict, ContactNotFound
from petstore.core.notifications import check_kinds, in_order
from petstore.core.people import Person
from petstore.transactions.accounts import find_account
from petstore.transactions.addresses import COLUMNS, add_contact
from petstore.transactions.journal import record
from petstore.transactions.people import find_person
from petstore.transactions.rows import CONTACT, select
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    names_of,
    read,
    reads,
    statement,
    write,
)

_TABLES: dict[Subject, str] = {"account": "accounts", "person": "people"}
_SELECT = f"SELECT {select(CONTACT)} FROM contacts"
# A contact that mail is made for, or that leaves, does not change meanwhile.
_OF = {
    subject: statement(f"{_SELECT} WHERE {column} = $1 ORDER BY id", lock=" FOR SHARE")
    for subject, column in COLUMNS.items()
}
_BY_TOKEN = statement(f"{_SELECT} WHERE token = $1", lock=" FOR NO KEY UPDATE")
_SWITCH = statement("UPDATE contacts SET off = $2 WHERE id = $1")
_CANCEL = statement("DELETE FROM mails WHERE contact_id = $1 AND kind = $2")
_REMOVE = statement("DELETE FROM contacts WHERE id = $1")


def read_contact(row: Sequence[Any]) -> Contact:
    """The contact in a row of the columns CONTACT."""
    contact_id, account_id, person_id, address, off, *rest = row
    subject: Subject = "person" if account_id is None else "account"
    kinds = tuple(off.split(",")) if off else ()
    return Contact(
        contact_id, subject, person_id if account_id is None else account_id, address, kinds, *rest
    )


def contacts_of(subject: Subject, subject_id: int) -> Script[list[Contact]]:
    """The contacts, in the order of their addition."""
    return [read_contact(row) for row in (yield _OF[subject], (subject_id,))]


def _of_token(token: str) -> Script[Contact]:
    """Raises ContactNotFound."""
    rows = (yield _BY_TOKEN, (token,)) if token.isascii() and token.isprintable() else []
    for row in rows:
        return read_contact(row)
    raise ContactNotFound(token)


class Contacts(Repository):
    """The contacts of a store. `reference` is an account's name or id, or a person's name.

    Methods that take one raise AccountNotFound or PersonNotFound. `actor` is for the journal.
    """

    of = reads(contacts_of)
    of_token = reads(_of_token)

    @write(NO_EFFECT, checks=True)
    def add(
        self,
        now_ms: int,
        subject: Subject,
        reference: str,
        address: str,
        actor: str,
        *,
        off: Collection[str] = (),
    ) -> Script[Contact]:
        """Add one that takes every notification of what commits later, except the kinds `off`.

        Raises Invalid for what is not an address and for other kinds, Conflict above CONTACTS_MAX, for a
        second time, and for a closed account.
        """
        check_address(address)
        check_kinds(subject, off)
        owner, there = yield from _find_all(subject, reference)
        if isinstance(owner, Account):
            owner.check_open()
        for contact in there:
            if is_same(contact.address, address):
                raise Conflict(f"{contact.address} is a contact of {owner.name} already.")
        if len(there) >= CONTACTS_MAX:
            raise Conflict(f"{owner.name} has {CONTACTS_MAX} contacts, which is all. Remove one first.")
        return (yield from add_contact(now_ms, subject, owner.id, address, actor, off))

    @write(NO_EFFECT)
    def remove(self, now_ms: int, subject: Subject, reference: str, address: str, actor: str) -> Script[None]:
        """Raises ContactNotFound. Mail to it that waits is never sent."""
        contact = yield from _find(subject, reference, address)
        yield _REMOVE, (contact.id,)
        before = {"contact": contact.journaled}
        yield from record(now_ms, actor, subject, contact.subject_id, "contact_removed", before, None)

    @write(NO_EFFECT, checks=True)
    def switch(
        self,
        now_ms: int,
        subject: Subject,
        reference: str,
        address: str,
        actor: str,
        *,
        off: Collection[str] = (),
        on: Collection[str] = (),
    ) -> Script[Contact]:
        """Take some kinds no more, and others again. Raises ContactNotFound, and Invalid for other kinds."""
        check_kinds(subject, (*off, *on))
        contact = yield from _find(subject, reference, address)
        return (yield from _switch(now_ms, contact, off, on, actor))

    @read
    def owner(self, contact: Contact) -> Script[str]:
        """The name of the account or person that a contact is of."""
        names = yield from names_of(_TABLES[contact.subject], (contact.subject_id,))
        return names[contact.subject_id]

    @write(NO_EFFECT)
    def switch_by_token(self, now_ms: int, token: str, kind: str, *, is_on: bool) -> Script[Contact]:
        """What the owner of the address does. Raises ContactNotFound, and Invalid for no kind that it can
        take."""
        contact = yield from _of_token(token)
        check_kinds(contact.subject, [kind])
        off, on = ((), (kind,)) if is_on else ((kind,), ())
        return (yield from _switch(now_ms, contact, off, on, f"mail:contact {contact.id}"))


def _find_all(subject: Subject, reference: str) -> Script[tuple[Account | Person, list[Contact]]]:
    """An account or person, and its contacts. A transaction locks its row until its end."""
    found = yield from (find_account(reference) if subject == "account" else find_person(reference))
    return found, (yield from contacts_of(subject, found.id))


def _find(subject: Subject, reference: str, address: str) -> Script[Contact]:
    _, there = yield from _find_all(subject, reference)
    for contact in there:
        if is_same(contact.address, address):
            return contact
    raise ContactNotFound(address)


def _switch(
    now_ms: int, contact: Contact, off: Collection[str], on: Collection[str], actor: str
) -> Script[Contact]:
    kinds = in_order({*contact.off, *off} - {*on})
    changed = replace(contact, off=kinds)
    if changed != contact:
        yield _SWITCH, (contact.id, ",".join(kinds))
        for kind in off:
            yield _CANCEL, (contact.id, kind)
        before, after = ({"contact": contact.journaled, "off": each.off} for each in (contact, changed))
        yield from record(
            now_ms, actor, contact.subject, contact.subject_id, "contact_changed", before, after
        )
    return changed
