"""`petstore accounts customer`: what staff know of the person behind an account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.groups import command
from petstore.cli.output import write_record
from petstore.cli.types import ACCOUNT, field_option, options
from petstore.core.customers import FIELDS, Customer

if TYPE_CHECKING:
    from petstore.wiring.administration import Store


@command(
    "customer",
    "petstore accounts customer shop",
    'petstore accounts customer shop --name "Anna Berg" --phone "+49 30 1234"',
    'petstore accounts customer shop --remark ""',
)
@click.argument("account", type=ACCOUNT)
@options(*[field_option(field, empty="unknown") for field in FIELDS])
def customer_command(session: Session, /, account: str, as_json: bool, **given: Any) -> None:
    """Show or change the person of an account.

    Without an option it shows what staff know. The service sends nothing to --email: `accounts contacts` is
    for that. The journal says what was changed, and not to what. `accounts close` deletes it.
    """
    changes = {name: value and value.strip() for name, value in given.items() if value is not UNSET}

    async def work(store: Store) -> Customer:
        found = await store.accounts.find(account)
        before = await store.customers.of(found.id)
        if not changes:
            return before
        wanted = replace(before, **changes)
        return await store.customers.set(str(found.id), wanted, session.actor, expected=before)

    record = asdict((with_store if changes else read_store)(session, work))
    write_record(record, record, as_json)
