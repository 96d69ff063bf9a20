"""The journal with filters, and the entries of one change."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.journal import folded, lines, lines_with_names
from petstore.console.journal_filters import read_filter
from petstore.console.lists import RowPage, links
from petstore.console.times import read_typed_day
from petstore.console.visit import View, Visit
from petstore.core.errors import Invalid, NotFound
from petstore.core.journal import JournalPage, JournalQuery, animals_of_list, people_of
from petstore.core.list_reverts import DONE
from petstore.core.values import INT64_MAX
from petstore.core.zones import day_begins_ms

_PAGE_LIMIT = 50
# Entries that are read at most for a page whose lines are of several.
_FOLDED_MAX = 500
# Entries that may be of a change as well after the first one of its line, which may begin within the change.
_NEWER_MAX = 2_500


async def show(visit: Visit) -> Response:
    """A page of entries, newest first. A filter's fault is shown beside it."""
    if visit.asked("change")["change"]:
        return await _show_change(visit)
    asked = _asked(visit)
    page = JournalPage([], has_more=False)
    try:
        page = await page_of_lines(visit, await read_query(visit))
    except (Invalid, NotFound) as error:
        visit.refuse(error, "about")
    listed = RowPage(page.entries, not visit.query.get("before"), next_start=page.next_start or 0)
    return visit.page(
        "journal.html",
        "Journal",
        lines=await lines_with_names(visit, page.entries),
        scan_end=page.scan_end,
        asked=asked,
        clear="journal" if any(asked.values()) else "",
        **links("journal", asked, listed, "before"),
    )


async def _show_change(visit: Visit) -> Response:
    """What an actor has changed at one time; `change` is an entry of it. The last entry of an import, and of
    its revert, is a line above the entries of its animals."""
    entry_id = min(visit.query_id("change"), INT64_MAX - _NEWER_MAX)
    found = (await visit.store.journal.page(JournalQuery(1, before_id=entry_id + 1))).entries
    if [entry.id for entry in found] != [entry_id]:
        raise NotFound("The journal has no such change.")
    (entry,) = found
    is_list, at_ms = animals_of_list(entry) > 0, entry.at_ms
    before_id = visit.query_id("before") or (entry_id if is_list else entry_id + _NEWER_MAX)
    page = await visit.store.journal.page(
        JournalQuery(_PAGE_LIMIT, None, entry.actor, at_ms, before_id, at_ms + 1)
    )
    # The query takes the parts of an actor too, such as the keys of an account.
    entries = [each for each in page.entries if each.actor == entry.actor]
    next_start = (page.next_start or 0) if page.has_more else 0
    listed = RowPage(entries, not visit.query.get("before"), next_start=next_start)
    can_be_reverted = is_list and entry.action != DONE
    return visit.page(
        "journal_change.html",
        "Stock list" if is_list else "One change",
        is_list=is_list,
        line=(await lines_with_names(visit, found))[0],
        revert=await visit.store.list_reverts.get(entry_id) if can_be_reverted else None,
        lines=lines(entries, people=await visit.store.people.names(people_of(entries))),
        **links("journal", {"change": str(entry_id)}, listed, "before"),
    )


async def page_of_lines(visit: Visit, query: JournalQuery) -> JournalPage:
    """A page of as many lines as the query's limit; see `lines_with_names`. An import is one of them."""
    page = await visit.store.journal.page(query)
    index = next((number for number, entry in enumerate(page.entries) if animals_of_list(entry)), None)
    if index is None or query.about is not None:
        return await _folded_page(visit, query, page)
    finished, shown = page.entries[index], page.entries[: index + 1]
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
        visit.query_id("before") or None,
        None if until is None else day_begins_ms(until + 1, visit.zone),
    )


VIEWS = [View("GET", "/journal", show)]
