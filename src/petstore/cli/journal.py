"""`petstore journal`: who changed what, when, from what to what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.context import Session, read_store
from petstore.cli.groups import command
from petstore.cli.output import echo_err, moment, write_records
from petstore.cli.types import ID, Since, limit_option
from petstore.core.amounts import write_amount
from petstore.core.errors import Invalid
from petstore.core.journal import About, Entry, JournalPage, JournalQuery, people_of, read_about
from petstore.core.pets import AMOUNTS
from petstore.core.printable import shortened

if TYPE_CHECKING:
    from petstore.wiring.administration import Store


def _read_about(ctx: click.Context, param: click.Parameter, value: str | None) -> About | None:
    try:
        return None if value is None else read_about(value)
    except Invalid as error:
        raise click.BadParameter(error.message, ctx, param) from None


def _checked_actor(_context: click.Context, _option: click.Parameter, actor: str | None) -> str | None:
    if actor is not None and not (actor and actor.isprintable()):
        raise click.BadParameter(
            f"{actor!r} names nobody; write cli:anna, cli, api:shop or 'api:shop/key 3'."
        )
    return actor


@command(
    "journal",
    "petstore journal",
    "petstore journal --about pet:7",
    "petstore journal --about account:shop --since 7d",
    "petstore journal --actor cli:anna --since 2026-10-01",
    "petstore journal --actor api:shop --limit 100 --json",
)
@click.option(
    "--about",
    callback=_read_about,
    metavar="WHAT",
    help="Only one object: pet:7, order:5, category:1, key:3, webhook:4, account:shop, person:anna, store.",
)
@click.option("--since", type=Since(), metavar="TIME", help="Only later ones: 2h, 2026-10-01, or a moment.")
@click.option(
    "--actor",
    callback=_checked_actor,
    metavar="WHO",
    help="Only by cli:anna, all of cli, console:anna, api:shop, its api:shop/key 3, service, or by mail.",
)
@limit_option
@click.option("--before", type=ID, metavar="ID", help="Only entries before this one.")
def journal(
    session: Session,
    about: About | None,
    since: int | None,
    actor: str | None,
    limit: int,
    before: int | None,
    as_json: bool,
) -> None:
    """Show who changed what, the newest change first.

    Each change of an animal, order, category, account, plan, key, webhook or person and each restore is one
    entry; so are bans, used-up days and keys that expire soon, which the service finds by itself. An
    account's entries are also those of its keys; what the account did itself is by api:ACCOUNT, and what a
    contact chose by a link in its mail by mail:contact ID. Removed objects keep their entries. When there are
    more, standard error says how to go on.
    """
    query = JournalQuery(limit, about, actor, since, before)
    page, people = read_store(session, lambda store: _read(store, query))
    write_records(
        [_record(entry) for entry in page.entries],
        {
            "ID": "id",
            "AT": "at",
            "BY": "actor",
            "WHAT": "type",
            "ABOUT": lambda record: people.get(str(record["about"]), record["about"]),
            "CHANGE": lambda record: change_text(record["before"], record["after"]),
        },
        as_json,
        empty="No entries match.",
    )
    if page.has_more:
        echo_err(f"There are more: add --before {page.next_start}")


async def _read(store: Store, query: JournalQuery) -> tuple[JournalPage, dict[str, str]]:
    """One page, and how people are called in it: `person:anna` for `person:3`."""
    page = await _search(store, query)
    names = await store.people.names(people_of(page.entries))
    return page, {f"person:{number}": f"person:{name}" for number, name in names.items()}


async def _search(store: Store, query: JournalQuery) -> JournalPage:
    """One page from the whole journal, however far back its entries are."""
    page = await store.journal.page(query)
    found = page.entries
    while page.scan_end is not None:
        further = msgspec.structs.replace(query, limit=query.limit - len(found), before_id=page.next_start)
        page = await store.journal.page(further)
        found += page.entries
    return JournalPage(found, page.has_more)


def _record(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.id,
        "at": moment(entry.at_ms),
        "actor": entry.actor,
        "type": entry.type,
        "about": entry.about,
        "before": entry.before,
        "after": entry.after,
    }


def change_text(before: object, after: object) -> str:
    """A change as text: `status: available -> sold`; of an addition or a removal, the members alone."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = [*before, *(name for name in after if name not in before)]
        changes = ((name, _text(name, before.get(name)), _text(name, after.get(name))) for name in names)
        return ", ".join(
            f"{name}: {old}" + (f" -> {new}" if new != old else "") for name, old, new in changes
        )
    members = before if isinstance(before, Mapping) else after
    assert isinstance(members, Mapping)
    return ", ".join(f"{name}: {_text(name, value)}" for name, value in members.items())


def _text(member: str, value: object) -> str:
    if value is None:
        return "-"
    if member in AMOUNTS and isinstance(value, int):
        return write_amount(value)
    return shortened(value) if isinstance(value, str) else json.dumps(value)
