"""The journal: who changed what, with filters; entries in words, and the newest ones about one object.

templates/journal_parts.html shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, groupby
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.journal_filters import read_filter
from petstore.console.times import read_typed_day
from petstore.console.visit import View, Visit, address
from petstore.core.amounts import write_amount
from petstore.core.errors import Invalid, NotFound, PetstoreError
from petstore.core.journal import (
    STORE,
    About,
    Entry,
    JournalPage,
    JournalQuery,
    animals_of_list,
    people_of,
)
from petstore.core.moments import read_moment
from petstore.core.people import Role
from petstore.core.printable import shortened
from petstore.core.zones import day_begins_ms

_PAGE_LIMIT = 50
# So many entries of one change are one line, and at most so many are read for a page.
_FOLDED_FROM = 5
_FOLDED_MAX = 500
_NAMES = {"pet": "animal"}
_PLACES = {"cli": "command line", "api": "API", "console": "console", "mail": "mail"}
_MEMBERS = {
    "petId": "animal",
    "accountId": "account",
    "categoryId": "category",
    "keyId": "key",
    "hasPassword": "password",
}
# The page of a subject, below the console.
_PAGES = {
    "pet": "pets/{}",
    "order": "orders/{}",
    "account": "accounts/{}",
    "key": "keys/{}",
    "webhook": "webhooks/{}",
    "person": "people/of/{}",
}
_OF_MOMENTS = ("At", "Date", "Until")
_ENTRIES = 20
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

# Texts for the values of some members, by the member's name in the journal.
Texts = Mapping[str, Callable[[Any], str]]
_TEXTS: Texts = {
    "price": write_amount,
    "hasPassword": lambda has: "set" if has else "none",
    "types": ", ".join,
    "off": ", ".join,
}


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
    """The entries of the animals of an import, newest first; `list` is the entry of its end."""
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
        "Import",
        line=(await lines_with_names(visit, [finished]))[0],
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
    left = query.limit - len(_folded(shown))
    if left <= 0:
        return JournalPage(shown, has_more=True, skipped_from=first_id)
    rest = await page_of_lines(visit, replace(query, limit=left, before_id=first_id))
    # On PostgreSQL others write meanwhile, so that some of its entries are before those.
    others = [each for each in rest.entries if (each.at_ms, each.actor) != (finished.at_ms, finished.actor)]
    return replace(rest, entries=[*shown, *others])


async def _folded_page(visit: Visit, query: JournalQuery, page: JournalPage) -> JournalPage:
    """The page with as many more entries as make it full."""
    if not page.has_more or len(_folded(page.entries)) == query.limit:
        return page
    page = await visit.store.journal.page(replace(query, limit=_FOLDED_MAX))
    shown = list(chain(*_folded(page.entries)[: query.limit]))
    return page if len(shown) == len(page.entries) else JournalPage(shown, has_more=True)


def _folded(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Many neighbours by one actor, of one time and type, as of an import, are together."""
    found: list[list[Entry]] = []
    for _, same in groupby(entries, lambda entry: (entry.actor, entry.at_ms, entry.type)):
        group = list(same)
        found += [group] if len(group) >= _FOLDED_FROM else [[entry] for entry in group]
    return found


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


class Change(msgspec.Struct, frozen=True):
    """One member: its value before and after, or one where it is new, removed or the same. A Unix time is an
    integer with `is_moment`."""

    member: str
    values: list[str | int | None]
    is_moment: bool


class Line(msgspec.Struct, frozen=True):
    """One entry. `who` acted at `place`. `page` shows `about` to people of at least the role `shown_to`;
    empty without a page. `same` are the lines of all entries of its change, where they are one line."""

    entry: Entry
    who: str
    place: str
    what: str
    about: str
    page: str
    shown_to: Role
    changes: list[Change]
    same: list[Line] = []


class History(msgspec.Struct, frozen=True):
    """The entries about one object, newest first. `older` is the journal's page with earlier ones."""

    lines: list[Line]
    older: str = ""
    is_removed: bool = False

    @property
    def newest_id(self) -> int:
        """The id of the newest entry; 0 without entries."""
        return self.lines[0].entry.id if self.lines else 0


async def history_of(
    visit: Visit, subject: str, number: int, texts: Texts | None = None, *, since_id: int = 0
) -> History:
    """The newest entries about an object, after the entry `since_id`."""
    page = await visit.store.journal.page(JournalQuery(_ENTRIES, About(subject, str(number))))
    entries = [entry for entry in page.entries if entry.id > since_id]
    older = ""
    if page.go_on_before is not None and len(entries) == len(page.entries):
        older = address("journal", {"about": f"{subject}:{number}", "before": page.go_on_before})
    return History(lines(entries, texts), older, bool(entries) and entries[0].action == "removed")


def lines(
    entries: Iterable[Entry], texts: Texts | None = None, people: Mapping[int, str] | None = None
) -> list[Line]:
    """The entries in words, in their order. `people` has the names of people by id."""
    return [_line(entry, texts or {}, people or {}) for entry in entries]


async def lines_with_names(visit: Visit, entries: list[Entry]) -> list[Line]:
    """The entries in words, with people's names; many of one change are one line."""
    names = await visit.store.people.names(people_of(entries))
    groups = [lines(same, people=names) for same in _folded(entries)]
    return [replace(same[0], same=same) if len(same) > 1 else same[0] for same in groups]


def _line(entry: Entry, texts: Texts, people: Mapping[int, str]) -> Line:
    place, _, name = entry.actor.partition(":")
    subject = _NAMES.get(entry.subject, entry.subject)
    if animals := animals_of_list(entry):
        return _line_of_list(entry, animals, name, place)
    action = entry.action.replace("_", " ")
    before, after = entry.before or {}, entry.after or {}
    is_person = entry.subject == "person"
    # A person's name never changes and is never reused.
    number: object = people.get(entry.subject_id) if is_person else entry.subject_id
    return Line(
        entry=entry,
        who=name.replace("/", ", ") or entry.actor,
        place=_PLACES.get(place, "") if name else "",
        what=f"{subject} {action}".capitalize(),
        about=subject if entry.subject == STORE else f"{subject} {number or entry.subject_id}",
        page=_PAGES.get(entry.subject, "").format(number) if number else "",
        shown_to=Role.OPERATOR if is_person else Role.VIEWER,
        changes=[
            _change(member, before, after, texts)
            for member in dict.fromkeys((*before, *after))  # the members of both, in this order
        ],
    )


def _line_of_list(entry: Entry, animals: int, name: str, place: str) -> Line:
    """An import with the animals that it added and changed."""
    assert entry.after is not None
    counts = {what: entry.after[what] for what in ("added", "changed", "rejected") if entry.after[what]}
    return Line(
        entry=entry,
        who=name,
        place=_PLACES.get(place, ""),
        what=f"{animals:,} {'animal' if animals == 1 else 'animals'} from a list",
        about=str(entry.after["list"]),
        page=f"journal?list={entry.id}",
        shown_to=Role.VIEWER,
        changes=[Change(what, [f"{count:,}"], is_moment=False) for what, count in counts.items()],
    )


def _change(member: str, before: Mapping[str, Any], after: Mapping[str, Any], texts: Texts) -> Change:
    say = texts.get(member) or _TEXTS.get(member, _text)
    is_moment = member.endswith(_OF_MOMENTS)
    values = [side[member] for side in (before, after) if member in side]
    if values[1:] == values[:1]:
        del values[1:]
    shown = [None if each is None else read_moment(each) if is_moment else say(each) for each in values]
    return Change(_MEMBERS.get(member) or _HUMP.sub(" ", member).lower(), shown, is_moment)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shortened(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


VIEWS = [View("GET", "/journal", show)]
