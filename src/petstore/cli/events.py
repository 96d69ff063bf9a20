"""`petstore events`: what clients see of the changes, once or as it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from petstore.cli.context import Session, read_store
from petstore.cli.groups import EXIT_INTERRUPTED, examples
from petstore.cli.journal import change_text
from petstore.cli.output import echo_err, moment, write_json, write_line
from petstore.cli.types import ACCOUNT, limit_option
from petstore.core.errors import EventsGone, InvalidParameter, OperatorError
from petstore.core.events import NOW, TYPES, Bookmark, Event, EventPage, EventQuery, read_bookmark, read_types
from petstore.core.moments import read_moment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from petstore.wiring.administration import Store

_POLL_SECONDS = 0.5
_WHOLE_JOURNAL = 10**15
_TYPE_WIDTH = max(len(kind.name) for kind in TYPES)


def _read_types(ctx: click.Context, param: click.Parameter, patterns: tuple[str, ...]) -> frozenset[str]:
    try:
        return read_types(patterns)
    except InvalidParameter as error:
        raise click.BadParameter(error.message.partition(": ")[2], ctx, param) from None


def read_after(ctx: click.Context, param: click.Parameter, text: str | None) -> Bookmark | str | None:
    """The option `--after`: a bookmark, NOW, or None when it is not given."""
    try:
        return text if text in (None, NOW) else read_bookmark(text)
    except InvalidParameter:
        raise click.BadParameter(
            f"{text!r} is not a bookmark: write now, or the last word that `petstore events` has printed on"
            " standard error. The id of an event is not a bookmark.",
            ctx,
            param,
        ) from None


@click.command(
    epilog=examples(
        "petstore events",
        "petstore events --follow",
        "petstore events --account shop --type 'order.*' --type key.revoked",
        "petstore events --after now",
        "petstore events --after 0f3a9c2b5d7e-0-117 --limit 1000 --json",
    )
)
@click.option("--account", type=ACCOUNT, help="Only what this account sees: a name or an id.")
@click.option(
    "--type",
    "entry_types",
    multiple=True,
    callback=_read_types,
    metavar="PATTERN",
    help="Only these: order.created, or 'order.*'. May be repeated.",
)
@click.option(
    "--after",
    callback=read_after,
    metavar="BOOKMARK",
    help="Begin after this bookmark, or with what happens from now on: now.",
)
@limit_option
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl+C.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_obj
def events(
    session: Session,
    account: str | None,
    entry_types: frozenset[str],
    after: Bookmark | str | None,
    limit: int,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the events that clients see, the oldest first.

    Without --after they are the newest. The last word on standard error is the bookmark to go on from: with
    it the next run begins where this one ended. Without --account it is the events of all accounts. Who made
    a change, and what is not public, is in `petstore journal`.
    """
    page: EventPage | None = None

    async def show(store: Store) -> None:
        nonlocal page
        account_id = None if account is None else (await store.accounts.find(account)).id
        async for found in _pages(store, EventQuery(limit, account_id, entry_types), after, follow):
            _write(found.events, as_json)
            page = found

    code = 0
    try:
        read_store(session, show)
    except EventsGone as error:
        reason = error.message.partition(". ")[0]
        raise OperatorError(
            f"{reason}. Leave out --after for the newest events, or write --after now."
        ) from None
    except KeyboardInterrupt:
        echo_err("")  # ends the line with the terminal's ^C
        code = EXIT_INTERRUPTED
    if page is not None:
        how = "There are more" if page.is_behind else "To go on from here"
        echo_err(f"{how}: add --after {page.after}")
    raise click.exceptions.Exit(code)


async def _pages(
    store: Store, query: EventQuery, after: Bookmark | str | None, follow: bool
) -> AsyncIterator[EventPage]:
    """The first `limit` events in one or more pages; with `follow` then all that come, without an end."""
    if after is None:
        page = await store.events.latest(query, _WHOLE_JOURNAL)
    elif isinstance(after, Bookmark):
        page = await store.events.page(replace(query, after=after))
    else:
        page = EventPage([], await store.events.newest(), is_behind=False)
    yield page
    wanted = query.limit - len(page.events)
    while follow or (page.is_behind and wanted):
        if not page.is_behind:
            await asyncio.sleep(_POLL_SECONDS)
        page = await store.events.page(
            replace(query, limit=query.limit if follow else wanted, after=page.after)
        )
        wanted -= len(page.events)
        yield page


def _write(found: list[Event], as_json: bool) -> None:
    for event in found:
        if as_json:
            write_json(event, indent=0)
        else:
            write_line(_text(event))


def _text(event: Event) -> str:
    """An event's line: `2026-11-21 09:00:00Z  pet.updated           7  status: available -> sold`."""
    data = dict(event.data)
    number, before = data.pop("id", "-"), data.pop("previous", None)
    change = change_text(before, data) if data or before is None else change_text(before, None)
    at = moment(read_moment(event.timestamp))
    return f"{at}  {event.type:<{_TYPE_WIDTH}}  {number:>6}  {change}".rstrip()
