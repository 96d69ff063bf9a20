"""The journal with filters, and the entries of an import."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.journal import folded, lines, lines_with_names
from petstore.console.journal_filters import read_filter
from petstore.console.times import read_typed_day
from petstore.console.visit import View, Visit, address
from petstore.core.errors import Invalid, NotFound, PetstoreError
from petstore.core.journal import (
    STORE,
    About,
    JournalPage,
    JournalQuery,
    animals_of_list,
)
from petstore.core.taking_back import DONE
from petstore.core.zones import day_begins_ms

_PAGE_LIMIT = 50
# At most so many entries are read for a page whose lines are of several.
_FOLDED_MAX = 500


async def show(visit: Visit) -> Response:
    """A page of entries, newest first. A filter's fault is shown beside it."""
    if visit.asked("list")["list"]:
        return await _show_list(visit)
    asked = _asked(visit)
    page = JournalPage([], has_more=False)
    error: PetstoreError | None = None
    try:
        page = await page_of_lines(visit, await read_query(visit))
    except (Invalid, NotFound) as fault:
        error = fault
    further = page.go_on_before
    return visit.page(
        "journal.html",
        "Journal",
        error=error,
        beside="about",
        lines=await lines_with_names(visit, page.entries),
        scan_end=page.scan_end,
        asked=asked,
        first=address("journal", asked) if visit.query.get("before") else "",
        csv=address("journal.csv", asked) if page.entries else "",
        clear="journal" if any(asked.values()) else "",
        next=address("journal", {**asked, "before": further}) if further else "",
    )


async def _show_list(visit: Visit) -> Response:
    """The entries of the animals of an import, or of its taking back; `list` is the entry of the end."""
    list_id, before_id = visit.place("list"), visit.place("before")
    found = await visit.store.journal.page(JournalQuery(1, About(STORE, "0"), before_id=list_id + 1))
    finished = next((each for each in found.entries if each.id == list_id and animals_of_list(each)), None)
    if finished is None:
        raise NotFound("The journal has no such import.")
    at_ms = finished.at_ms
    query = JournalQuery(_PAGE_LIMIT, None, finished.actor, at_ms, before_id or list_id, at_ms + 1)
    page = await visit.store.journal.page(query)
    asked, further = {"list": list_id}, page.go_on_before if page.has_more else None
    return visit.page(
        "journal_list.html",
        "Stock list",
        line=(await lines_with_names(visit, [finished]))[0],
        taking_back=None if finished.action == DONE else await visit.store.takings_back.find(list_id),
        lines=lines(page.entries),
        first=address("journal", asked) if before_id else "",
        next=address("journal", {**asked, "before": further}) if further else "",
    )


async def page_of_lines(visit: Visit, query: JournalQuery) -> JournalPage:
    """A page of as many lines as the query's limit; see `lines_with_names`. An import is one of them."""
    page = await visit.store.journal.page(query)
    place = next((at for at, entry in enumerate(page.entries) if animals_of_list(entry)), None)
    if place is None or query.about is not None:
        return await _folded_page(visit, query, page)
    finished, shown = page.entries[place], page.entries[: place + 1]
    if not query.is_searched:
        shown += await visit.store.journal.beside(finished)
    first_id = finished.id - animals_of_list(finished)
    left = query.limit - len(folded(shown))
    if left <= 0:
        return JournalPage(shown, has_more=True, skipped_from=first_id)
    rest = await page_of_lines(visit, replace(query, limit=left, before_id=first_id))
    # On PostgreSQL others write meanwhile, so that some of its entries are before those.
    others = [each for each in rest.entries if (each.at_ms, each.actor) != (finished.at_ms, finished.actor)]
    return replace(rest, entries=[*shown, *others])


async def _folded_page(visit: Visit, query: JournalQuery, page: JournalPage) -> JournalPage:
    """The page with as many more entries as make it full."""
    if not page.has_more or len(folded(page.entries)) == query.limit:
        return page
    page = await visit.store.journal.page(replace(query, limit=_FOLDED_MAX))
    shown = list(chain(*folded(page.entries)[: query.limit]))
    return page if len(shown) == len(page.entries) else JournalPage(shown, has_more=True)


def _asked(visit: Visit) -> dict[str, str]:
    return visit.asked("about", "actor", "since", "until")


async def read_query(visit: Visit) -> JournalQuery:
    """Raises Invalid, with the filter at fault as its field, InvalidParameter and NotFound."""
    asked = _asked(visit)
    about = await read_filter(visit, asked["about"]) if asked["about"] else None
    since, until = (read_typed_day(name, asked[name]) if asked[name] else None for name in ("since", "until"))
    if since is not None and until is not None and since > until:
        raise Invalid("until", "The last day is before the first one.")
    if not asked["actor"].isprintable():
        raise Invalid("actor", "Write a name such as console:anna, cli:anna, api:shop, or just api.")
    return JournalQuery(
        _PAGE_LIMIT,
        about,
        asked["actor"] or None,
        None if since is None else day_begins_ms(since, visit.zone),
        visit.place("before") or None,
        None if until is None else day_begins_ms(until + 1, visit.zone),
    )


VIEWS = [View("GET", "/journal", show)]
