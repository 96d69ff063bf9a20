"""The journal: who changed what, with filters."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from petstore.console.addresses import place_in
from petstore.console.history import lines_with_names
from petstore.console.visit import View, Visit, address
from petstore.core.durations import DAY_MS
from petstore.core.errors import Invalid, NotFound
from petstore.core.journal import JournalPage, JournalQuery, read_about
from petstore.core.moments import read_day
from petstore.transactions.store import Parts

_FILTERS = ("about", "actor", "since", "until")
_PAGE_LIMIT = 50


class JournalPages:
    """`/journal`."""

    def __init__(self, store: Parts) -> None:
        self._store = store

    def views(self) -> list[View]:
        return [View("GET", "/journal", self.show)]

    async def show(self, visit: Visit) -> Response:
        """A page of entries, newest first. A filter's fault is shown beside it."""
        asked = visit.asked(*_FILTERS)
        before_id = place_in(visit.query, "before")
        page, status, faults = JournalPage([], has_more=False), 200, dict.fromkeys(_FILTERS, "")
        try:
            page = await self._store.journal.page(_read_query(asked, before_id or None))
        except (Invalid, NotFound) as error:
            status = error.status
            faults[error.field if isinstance(error, Invalid) else "about"] = error.message
        further = page.go_on_before
        return visit.page(
            "journal.html",
            "Journal",
            status,
            fragment="rows",
            lines=await lines_with_names(page.entries, self._store.people),
            scan_end=page.scan_end,
            asked=asked,
            faults=faults,
            first=address("journal", asked) if before_id else "",
            next=address("journal", {**asked, "before": further}) if further else "",
        )


def _read_query(asked: Mapping[str, str], before_id: int | None) -> JournalQuery:
    """Raises Invalid, with the filter at fault as its field."""
    since = _read_day("since", asked["since"])
    until = _read_day("until", asked["until"])
    if since is not None and until is not None and since > until:
        raise Invalid("until", "The last day is before the first one.")
    if not asked["actor"].isprintable():
        raise Invalid("actor", "Write a name such as console:anna, cli:anna, api:shop, or just api.")
    return JournalQuery(
        _PAGE_LIMIT,
        read_about(asked["about"]) if asked["about"] else None,
        asked["actor"] or None,
        None if since is None else since * DAY_MS,
        before_id,
        None if until is None else (until + 1) * DAY_MS,
    )


def _read_day(name: str, text: str) -> int | None:
    """A UTC day, counted from the epoch; None without a text."""
    if not text:
        return None
    day = read_day(text)
    if day is None:
        raise Invalid(name, f"{text!r} is no day: write it like 2026-11-22.")
    return day
