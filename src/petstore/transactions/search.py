"""Searches in the texts of animals, orders and accounts, and the index that follows the journal.

The index only says where to look: each text is read before it is shown, and what the journal has beyond the
index is looked at as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import EventsGone, StoreUnavailable
from petstore.core.events import EventQuery
from petstore.core.search import FORMAT, IndexProgress, SearchIndex, SearchKind, Words
from petstore.core.values import IDS_MAX, INT64_MAX
from petstore.transactions.events import ENTRIES_SCANNED_MAX, Events
from petstore.transactions.query import Query
from petstore.transactions.script import Database, Repository, Script, padded, rows_of, statement

# Texts of the index that a search looks at, at most.
TEXTS_SCANNED_MAX = 1_000
# Rows that are put into a new index at a time.
ROWS_PER_STEP = 2_000
# A newer release beside this one goes on with its index sooner, unless nothing is changed: then it has to
# make its own again.
_LEFT_SECONDS = 600.0


class _Source(msgspec.Struct, frozen=True):
    """The places of a kind's texts, in the tables and in the journal."""

    column: str
    subject: str
    actions: tuple[str, ...]

    @property
    def types(self) -> frozenset[str]:
        return frozenset(f"{self.subject}.{action}" for action in self.actions)


_SOURCES = {
    SearchKind.PETS: _Source("name", "pet", ("added", "changed", "removed")),
    SearchKind.ORDERS: _Source("reference", "order", ("placed", "changed")),
    SearchKind.ACCOUNTS: _Source("name", "account", ("added", "renamed")),
}
_KINDS = tuple(_SOURCES)
_BY_SUBJECT = {source.subject: kind for kind, source in _SOURCES.items()}
_TYPES = frozenset().union(*(source.types for source in _SOURCES.values()))


class SearchQuery(msgspec.Struct, frozen=True):
    """The rows of a kind to find by words of their text: at most `limit`, those beyond `after_id`.

    `conditions` are values by their columns: None is NULL, True anything else, a tuple one of its values.
    """

    kind: SearchKind
    text: str
    limit: int
    after_id: int = 0
    newest_first: bool = True
    conditions: Mapping[str, object] = {}


class SearchPage(msgspec.Struct, frozen=True):
    """Identifiers in their order. `next_start`: where to go on, 0 at the end.

    `is_cut`: a bounded look ended there. `is_late`: more has changed lately than is looked at.
    """

    ids: tuple[int, ...] = ()
    next_start: int = 0
    is_cut: bool = False
    is_late: bool = False


class Search(Repository):
    """Finds rows by their texts."""

    def __init__(self, database: Database, clock: Clock, events: Events, index: SearchIndex) -> None:
        super().__init__(database, clock)
        self._events = events
        self.index = index
        self._foreign: tuple[IndexProgress, float] | None = None  # made by a newer release, and since when

    async def find(self, query: SearchQuery) -> SearchPage | None:
        """What the index finds; None while it is made, or can't be read. Raises StoreUnavailable."""
        try:
            return await self._find(query)
        except (EventsGone, StoreUnavailable):  # the index is of another data set, or its file is at fault
            return None

    async def _find(self, query: SearchQuery) -> SearchPage | None:
        words, progress = Words(query.text), await self.index.progress()
        if progress is None or progress.building or progress.format != FORMAT:
            return None
        types = _SOURCES[query.kind].types
        page = await self._events.entries(EventQuery(ENTRIES_SCANNED_MAX, None, types, progress.bookmark))
        newer, is_late = {entry.subject_id for entry, _ in page.entries}, page.is_behind
        at_id = query.after_id or (INT64_MAX if query.newest_first else 0)
        matches: list[int] = []
        for limit in (IDS_MAX, TEXTS_SCANNED_MAX - IDS_MAX) if words else ():
            ids = await self.index.find(
                query.kind, words.keys, at_id, newest_first=query.newest_first, limit=limit
            )
            is_last = len(ids) < limit
            end = (0 if query.newest_first else INT64_MAX) if is_last else ids[-1]
            near = {id_ for id_ in newer if min(at_id, end) <= id_ <= max(at_id, end) and id_ != at_id}
            candidates = sorted({*ids, *near}, reverse=query.newest_first)
            texts = await self._database.read(_texts(query.kind, candidates, query.conditions))
            matches += [id_ for id_, text in texts.items() if text and words.match(text)]
            if len(matches) > query.limit:
                return SearchPage(tuple(matches[: query.limit]), matches[query.limit - 1], is_late=is_late)
            if is_last:
                return SearchPage(tuple(matches), is_late=is_late)
            at_id = end
        return SearchPage(tuple(matches), at_id if words else 0, is_cut=bool(words), is_late=is_late)

    async def step(self) -> IndexProgress | None:
        """Put the next rows into the index; its progress while there are more. Any process may."""
        progress = await self.index.progress()
        if progress is None:
            return await self._begin(None)
        if progress.format > FORMAT:
            return await self._begin(progress) if self._is_left(progress) else None
        if progress.building:
            return await self._build(progress, progress.building)
        try:
            page = await self._events.entries(
                EventQuery(ENTRIES_SCANNED_MAX, None, _TYPES, progress.bookmark)
            )
        except EventsGone:
            return await self._begin(progress)
        if page.after != progress.bookmark:
            changed: dict[SearchKind, set[int]] = {}
            for entry, _ in page.entries:
                kind = _BY_SUBJECT[entry.subject]
                if not entry.before or not entry.after or _SOURCES[kind].column in entry.after:
                    changed.setdefault(kind, set()).add(entry.subject_id)
            texts = {kind: await self._database.read(_texts(kind, ids)) for kind, ids in changed.items()}
            await self.index.put(texts, progress, IndexProgress(page.after))
        return IndexProgress(page.after) if page.is_behind else None

    def _is_left(self, progress: IndexProgress) -> bool:
        """Whether nobody goes on with the index of a newer release: somebody went back to this one."""
        now = self._clock.monotonic()
        if self._foreign is None or self._foreign[0] != progress:
            self._foreign = progress, now
        return now - self._foreign[1] >= _LEFT_SECONDS

    async def _begin(self, progress: IndexProgress | None) -> IndexProgress:
        begun = IndexProgress(await self._events.newest(), _KINDS[0])
        await self.index.put({}, progress, begun)
        return begun

    async def _build(self, progress: IndexProgress, kind: SearchKind) -> IndexProgress:
        sql = f"SELECT id, {_SOURCES[kind].column} FROM {kind} WHERE id > $1 ORDER BY id LIMIT $2"
        rows = dict(await self._database.read(rows_of(statement(sql), progress.after_id, ROWS_PER_STEP)))
        if len(rows) == ROWS_PER_STEP:
            after = msgspec.structs.replace(progress, after_id=max(rows))
        else:
            following = dict(pairwise(_KINDS)).get(kind)
            after = IndexProgress(progress.bookmark, following)
        await self.index.put({kind: rows}, progress, after)
        return after


def _texts(
    kind: SearchKind, ids: Iterable[int], conditions: Mapping[str, object] = {}
) -> Script[dict[int, str | None]]:
    """The texts in the order of `ids`; None for a row that is not there, or does not meet the conditions."""
    asked = tuple(ids)
    texts: dict[int, str | None] = dict.fromkeys(asked)
    for first in range(0, len(asked), IDS_MAX):
        wanted = Query()
        wanted.among("id", padded(asked[first : first + IDS_MAX]))
        for name, value in conditions.items():
            if value is None or value is True:
                wanted.add(f"{name} IS {'NOT ' if value else ''}NULL")
            else:
                wanted.among(name, value if isinstance(value, tuple) else (value,))
        texts |= dict((yield wanted.select(f"SELECT id, {_SOURCES[kind].column} FROM {kind}", "")))
    return texts
