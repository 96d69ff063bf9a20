"""`petstore keys list`: the keys of an account, or those that a stage refuses."""

from __future__ import annotations

import click

from petstore.cli.context import Session, read_store
from petstore.cli.groups import command
from petstore.cli.output import Columns, write_records
from petstore.cli.records import key_record
from petstore.cli.types import ACCOUNT
from petstore.core.errors import ConfigurationError

_COLUMNS: Columns = {
    "ID": "id",
    "KEY": "display",
    "LABEL": lambda key: key["label"] or "-",
    "ACCESS": "access",
    "STATE": "state",
    "CREATED": "createdAt",
    "EXPIRES": "expiresAt",
    "LAST USED": "lastUsedAt",
}


@command("list", "petstore keys list shop", "petstore keys list shop --json", "petstore keys list --foreign")
@click.argument("account", type=ACCOUNT, required=False)
@click.option("--foreign", is_flag=True, help="The keys that PETSTORE_STAGE refuses, of all accounts.")
def list_keys(session: Session, account: str | None, foreign: bool, as_json: bool) -> None:
    """List an account's keys.

    Shows the beginning and the last four characters of each: the rest is not kept. A running server writes
    the last use about once a second. With --foreign the list shows the keys of all accounts that a service
    with this PETSTORE_STAGE refuses.
    """
    if (account is None) is not foreign:
        raise click.UsageError("Name an account, or give --foreign.", click.get_current_context())
    stage, now_ms = session.settings.stage, session.clock.now_ms()
    if account is not None:
        found = read_store(session, lambda store: store.keys.of_account(account))
        empty = f"The account has no keys yet: petstore keys issue {account}"
        write_records([key_record(key, now_ms) for key in found], _COLUMNS, as_json, empty=empty)
        return
    if stage is None:
        raise ConfigurationError("--foreign needs a stage: set PETSTORE_STAGE to production or staging.")
    foreign_keys = read_store(session, lambda store: store.stages.foreign_keys(stage))
    records = [{"account": name, **key_record(key, now_ms)} for name, key in foreign_keys]
    write_records(
        records, {"ACCOUNT": "account", **_COLUMNS}, as_json, empty=f"{stage} refuses no key.".capitalize()
    )
