"""`accounts contacts` and `people contacts`: the addresses that get mail, and of what they get none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.groups import command
from petstore.cli.output import Record, echo_err, moment, write_record, write_records
from petstore.cli.types import checked
from petstore.core.contacts import Contact, Subject, check_address, check_addresses, is_same
from petstore.core.errors import ContactNotFound, OperatorError
from petstore.core.notifications import kinds_for

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

# For each subject the group of its command, an example's name and the first line of the help.
_GROUPS: dict[Subject, tuple[str, str, str]] = {
    "account": ("accounts", "shop", "List, add, change or remove who gets a customer's mail."),
    "person": ("people", "anna", "List, add, change or remove where a person gets mail."),
}
_HELP = """{summary}

Without ADDRESS it lists the contacts, with ADDRESS alone it shows that one. A new contact gets mail of every
kind, of what happens from then on; the last words of each mail lead to a page where its reader chooses.
--remove also drops mail that waits, and prints the contact as it was.

`petstore notifications kinds` says what each KIND is about."""


class _Change(msgspec.Struct, frozen=True):
    """The options that change a contact."""

    add: bool
    remove: bool
    off: tuple[str, ...]
    on: tuple[str, ...]


email_option = click.option(
    "--email",
    "addresses",
    multiple=True,
    callback=checked(check_addresses),
    metavar="ADDRESS",
    help="A contact, which gets mail of what happens. May be repeated.",
)


def contacts_command(subject: Subject, owner: Callable[[Any], Any]) -> click.Command:
    """The command in the group of a subject. `owner` adds its argument `reference`."""
    group, name, summary = _GROUPS[subject]
    kinds = [kind.name for kind in kinds_for(subject)]
    line = f"petstore {group} contacts {name}"
    shown = [f"{line} anna@example.com {option}" for option in ("--add", f"--off {kinds[0]}", "--remove")]

    @command("contacts", line, *shown, text=_HELP.format(summary=summary))
    @owner
    @click.argument("address", required=False, callback=checked(check_address))
    @click.option("--add", is_flag=True, help="Add it.")
    @click.option("--remove", is_flag=True, help="Remove it.")
    @_kinds_option("--off", kinds, "Send it no mail of this kind. May be repeated.")
    @_kinds_option("--on", kinds, "Send it mail of this kind again. May be repeated.")
    def contacts(
        session: Session, /, reference: str, address: str | None, as_json: bool, **options: Any
    ) -> None:
        change = _Change(**options)
        _check_usage(address, change)
        try:
            if address is None:
                _list(session, subject, reference, as_json)
            else:
                _write(_changed(session, subject, reference, address, change), as_json)
        except ContactNotFound:
            raise OperatorError(
                f"{reference} has no contact {address}; `petstore {group} contacts {reference}` shows them."
            ) from None
        if change.add:
            say_unless_mailed(session)

    return contacts


def say_unless_mailed(session: Session) -> None:
    """Say where no mail is sent at all."""
    if session.settings.smtp_url is None:
        echo_err("No mail is sent until PETSTORE_SMTP_URL is set.")


def _kinds_option(name: str, kinds: list[str], text: str) -> Callable[[Any], Any]:
    return click.option(name, multiple=True, type=click.Choice(kinds), metavar="KIND", help=text)


def _check_usage(address: str | None, change: _Change) -> None:
    both = [kind for kind in change.off if kind in change.on]
    fault = ""
    if address is None and change != _Change(add=False, remove=False, off=(), on=()):
        fault = "Say which ADDRESS --add, --remove, --off or --on is for."
    elif change.add and change.remove:
        fault = "Give either --add or --remove."
    elif change.remove and (change.off or change.on):
        fault = "--remove ends all mail to the address: leave out --off and --on."
    elif both:
        fault = f"{both[0]} is given to --off and to --on: leave out one."
    if fault:
        raise click.UsageError(fault, click.get_current_context())


def _changed(session: Session, subject: Subject, reference: str, address: str, change: _Change) -> Contact:
    """The contact after the change, or as it was when it is removed."""
    its = subject, reference, address

    async def work(store: Store) -> Contact:
        if change.add:
            return await store.contacts.add(*its, session.actor, off=change.off)
        if change.off or change.on:
            return await store.contacts.switch(*its, session.actor, off=change.off, on=change.on)
        there = await _contacts_of(store, subject, reference)
        found = next((contact for contact in there if is_same(contact.address, address)), None)
        if found is None:
            raise ContactNotFound(address)
        if change.remove:
            await store.contacts.remove(*its, session.actor)
        return found

    changes = change.add or change.remove or change.off or change.on
    return (with_store if changes else read_store)(session, work)


async def _contacts_of(store: Store, subject: Subject, reference: str) -> list[Contact]:
    owner = await (store.accounts if subject == "account" else store.people).find(reference)
    return await store.contacts.of(subject, owner.id)


def _list(session: Session, subject: Subject, reference: str, as_json: bool) -> None:
    found = read_store(session, lambda store: _contacts_of(store, subject, reference))
    write_records(
        [_record(contact) for contact in found],
        {"ADDRESS": "address", "OFF": _off, "ADDED": "createdAt", "FAULT": "fault", "FAULT AT": "faultAt"},
        as_json,
        empty=f"No contacts: petstore {_GROUPS[subject][0]} contacts {reference} ADDRESS --add",
    )


def _record(contact: Contact) -> Record:
    """The members of a contact; never its token."""
    return {
        "id": contact.id,
        "address": contact.address,
        "off": contact.off,
        "createdAt": moment(contact.created_at_ms),
        "fault": contact.fault,
        "faultAt": moment(contact.fault_at_ms),
    }


def _off(record: Record) -> str:
    off = record["off"]
    assert isinstance(off, tuple)
    return ", ".join(off) or "-"


def _write(contact: Contact, as_json: bool) -> None:
    record = _record(contact)
    fields = {
        "contact": contact.address,
        "off": _off(record),
        "added": record["createdAt"],
        "fault": contact.fault,
        "fault at": record["faultAt"],
    }
    write_record(record, fields, as_json)
