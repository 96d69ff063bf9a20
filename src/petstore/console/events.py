"""The newest events, as clients see them. The page refreshes itself."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.journal import Line, lines
from petstore.console.visit import View, Visit, address
from petstore.core.errors import Invalid, InvalidParameter, NotFound
from petstore.core.events import PATTERNS, Event, EventQuery, read_types
from petstore.core.journal import Entry
from petstore.core.moments import read_moment
from petstore.core.values import PAGE_LIMIT_MAX

_TYPES = [("", "All"), *((pattern, pattern) for pattern in PATTERNS)]


async def show(visit: Visit) -> Response:
    """The page, or for htmx its refreshed block. A filter's fault is shown beside it."""
    asked = visit.asked("type", "account")
    rows: list[tuple[Event, Line]] = []
    try:
        page = await visit.store.events.latest(await _query_of(visit, asked["type"], asked["account"]))
        rows = [(event, _line_of(event)) for event in reversed(page.events)]
    except (Invalid, NotFound) as error:
        visit.refuse(error, "account")
    return visit.page(
        "events.html",
        "Events",
        fragment="now",
        rows=rows,
        types=_TYPES,
        asked=asked,
        here=address("events", asked),
    )


async def _query_of(visit: Visit, pattern: str, account: str) -> EventQuery:
    """Raises Invalid, with the filter at fault as its field, and AccountNotFound."""
    try:
        entry_types = read_types([pattern] if pattern else [])
    except InvalidParameter:
        raise Invalid("type", "There is no such type.") from None
    account_id = (await visit.store.accounts.find(account)).id if account else None
    return EventQuery(PAGE_LIMIT_MAX, account_id, entry_types)


def _line_of(event: Event) -> Line:
    """The event's data in words, as the page of the journal words the entry that it is made of."""
    data = dict(event.data)
    number, before = data.pop("id", 0), data.pop("previous", None)
    subject, _, action = event.type.partition(".")
    entry_id = int(event.id.rpartition("_")[2])
    entry = Entry(entry_id, read_moment(event.timestamp) or 0, "", subject, number, action, before, data)
    return lines([entry])[0]


VIEWS = [View("GET", "/events", show)]
