"""`petstore people`: who may use the console. A one-time link is printed once; passwords never are."""

from __future__ import annotations

import click

from petstore.cli.contacts import contacts_command, email_option, say_unless_mailed
from petstore.cli.context import Session, read_store, with_store, with_store_on_a_full_disk
from petstore.cli.groups import LazyGroup
from petstore.cli.output import (
    asks,
    confirm,
    echo_err,
    moment,
    print_once,
    write_record,
    write_records,
    yes_option,
)
from petstore.cli.types import checked
from petstore.core.people import Person, Role, SignInLink, check_person_name
from petstore.core.sign_ins import link_address

_ROLES = click.Choice([role.value for role in Role])
_name = click.argument("name", callback=checked(check_person_name))


@click.group(cls=LazyGroup)
def people() -> None:
    """The people who use the console.

    A new person gets a one-time link, with which they set a password of their own. A person who lost the
    password gets a new link by `petstore people reset`.
    """


@people.offers(
    "add",
    "petstore people add anna --role staff --email anna@example.com",
    "petstore people add anna --role operator > link.txt   # the file holds the link and nothing else",
)
@_name
@click.option(
    "--role", type=_ROLES, required=True, help="What the person may do; each includes the one before."
)
@email_option
def add_person(session: Session, name: str, role: str, addresses: tuple[str, ...], as_json: bool) -> None:
    """Add a person and print their one-time link.

    A viewer reads. Staff also works with animals, orders, categories and stock lists. An operator does
    everything, such as accounts, keys and people. The link is valid for 24 hours, and works once. Standard
    output holds the link alone.
    """
    link = with_store(
        session, lambda store: store.people.add(name, Role(role), session.actor, addresses=addresses)
    )
    _show_link(session, link, as_json)
    if addresses:
        say_unless_mailed(session)


@people.offers("list", "petstore people list", "petstore people list --json")
def list_people(session: Session, as_json: bool) -> None:
    """List everybody, by name."""
    found = read_store(session, lambda store: store.people.all())
    write_records(
        [_record(person) for person in found],
        {"ID": "id", "NAME": "name", "ROLE": "role", "STATE": "state", "CREATED": "createdAt"},
        as_json,
        empty="Nobody yet: petstore people add NAME --role operator",
    )


@people.offers("disable", "petstore people disable anna", "petstore people disable anna --yes")
@_name
@yes_option
def disable_person(session: Session, name: str, yes: bool, as_json: bool) -> None:
    """End a person's sessions and links, and refuse new sign-ins.

    Acts on their next request. `petstore people enable` lets them in again. On a terminal it asks first.
    Works on a full disk too, with the room that the server keeps back for it.
    """
    if asks(yes):
        confirm(f"Sign {name} out everywhere, and refuse new sign-ins?")
    disabled = with_store_on_a_full_disk(
        session, lambda store: store.people.disable(name, session.actor, keeps_operator=False)
    )
    _write(disabled, as_json)
    _warn_without_operator(session)


@people.offers("enable", "petstore people enable anna")
@_name
def enable_person(session: Session, name: str, as_json: bool) -> None:
    """Let a disabled person in again, with their previous password."""
    enabled = with_store(session, lambda store: store.people.enable(name, session.actor))
    _write(enabled, as_json)
    if not enabled.has_password:  # their link ended when they were disabled
        echo_err(f"Next, for a new link: petstore people reset {enabled.name}")


@people.offers("reset", "petstore people reset anna")
@_name
def reset_person(session: Session, name: str, as_json: bool) -> None:
    """Print a new one-time link; password and sessions end.

    For a lost password, or a link that expired unused. Standard output holds the link alone.
    """
    _show_link(session, with_store(session, lambda store: store.people.reset(name, session.actor)), as_json)


@people.offers("role", "petstore people role anna operator")
@_name
@click.argument("role", type=_ROLES)
def set_role(session: Session, name: str, role: str, as_json: bool) -> None:
    """Change what a person may do.

    Acts on their next request; sessions go on.
    """
    changed = with_store(
        session, lambda store: store.people.set_role(name, Role(role), session.actor, keeps_operator=False)
    )
    _write(changed, as_json)
    _warn_without_operator(session)


def _record(person: Person) -> dict[str, object]:
    return {
        "id": person.id,
        "name": person.name,
        "role": person.role,
        "state": person.state,
        "createdAt": moment(person.created_at_ms),
    }


def _write(person: Person, as_json: bool) -> None:
    fields = {
        "person": f"{person.name} (id {person.id})",
        "role": person.role,
        "state": person.state,
        "created": moment(person.created_at_ms),
    }
    write_record(_record(person), fields, as_json)


def _warn_without_operator(session: Session) -> None:
    """The shell can always add one, so this command may go so far; the console refuses it."""
    everybody = with_store(session, lambda store: store.people.all())
    if not any(person.role is Role.OPERATOR and person.disabled_at_ms is None for person in everybody):
        echo_err("Nobody is an operator now: petstore people add NAME --role operator")


def _show_link(session: Session, link: SignInLink, as_json: bool) -> None:
    """Show a one-time link. Raises ClickException when it can't be printed."""
    address, person = link_address(session.settings.reached_at, link), link.person
    if not as_json:
        until = moment(link.expires_at_ms)
        echo_err(f"{person.name}, {person.role}: one-time link, valid until {until}. It is shown only now:")
    if not session.settings.has_console:
        echo_err("With these settings the console is off: PETSTORE_CONSOLE=on.")
    record = {**_record(person), "link": address, "linkExpiresAt": moment(link.expires_at_ms)}
    remedy = f"petstore people reset {person.name} makes another."
    print_once("The link", record, address, as_json, remedy=remedy)


people.add_command(
    contacts_command(
        "person", click.argument("reference", callback=checked(check_person_name), metavar="NAME")
    )
)
