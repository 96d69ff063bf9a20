"""The addition of contacts, for both databases: with their account or person, or later."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from petstore.core.contacts import Contact, Subject, new_mail_token
from petstore.core.notifications import in_order
from petstore.transactions.journal import record
from petstore.transactions.script import Script, statement

COLUMNS: dict[Subject, str] = {"account": "account_id", "person": "person_id"}
_ADD = {
    subject: statement(
        f"INSERT INTO contacts ({column}, address, off, token, created_at_ms) VALUES ($1, $2, $3, $4, $5)"
        " RETURNING id"
    )
    for subject, column in COLUMNS.items()
}


def add_contact(
    now_ms: int, subject: Subject, subject_id: int, address: str, actor: str, off: Collection[str] = ()
) -> Script[Contact]:
    """Add one that is checked, to an account or a person whose row the transaction has locked."""
    token, kinds = new_mail_token(), in_order(off)
    ((contact_id,),) = yield _ADD[subject], (subject_id, address, ",".join(kinds), token, now_ms)
    added = Contact(contact_id, subject, subject_id, address, kinds, token, now_ms)
    after = {"contact": added.journaled} | ({"off": kinds} if kinds else {})
    yield from record(now_ms, actor, subject, subject_id, "contact_added", None, after)
    return added


def add_contacts(
    now_ms: int, subject: Subject, subject_id: int, addresses: Sequence[str], actor: str
) -> Script[None]:
    """Add the first ones of an account or a person, which `check_addresses` has let pass."""
    for address in addresses:
        yield from add_contact(now_ms, subject, subject_id, address, actor)
