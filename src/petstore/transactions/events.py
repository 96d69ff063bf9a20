"""The journal as events, for both databases: in the order in which no entry appears late.

SQLite has one writer, so its identifiers are in the order of the commits. PostgreSQL hands them out before:
below the oldest transaction that runs, in the whole cluster, nothing is added any more. Entries that came
with the data (up to `base_id`) have transactions of another cluster: they are first, by their identifiers.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from petstore.core.errors import EventsGone
from petstore.core.events import (
    SHARED,
    Bookmark,
    EntrySummary,
    Event,
    EventPage,
    EventQuery,
    Position,
    event_of,
)
from petstore.core.journal import SERVICE, STORE, Entry
from petstore.transactions.journal import record
from petstore.transactions.rows import ENTRY, read_entry, select
from petstore.transactions.script import NO_EFFECT, Repository, Script, Statement, read, write

# Entries that a request reads at most.
ENTRIES_SCANNED_MAX = 2_000

# Identifies the journal among its copies. A cluster that was restored to a moment has a new timeline.
_STAMP = (
    "(SELECT system_identifier FROM pg_control_system())::text"
    " || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)"
    " || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    " || '/' || 'journal'::regclass::oid"
)

# The entries after a position, $1 and $2: in SQLite; in PostgreSQL those that came with the data, and the
# others, as soon as nothing is added before them any more.
BASE = "(SELECT base_id FROM data_set)"
_FIRST = "(SELECT base_transaction FROM data_set)"
OLDEST = "pg_snapshot_xmin(pg_current_snapshot())"
_SETTLED = f"id > {BASE} AND transaction < {OLDEST}"
_IN_SQLITE = "FROM journal WHERE id > ?2"
_UP_TO_BASE = f"FROM journal WHERE id > $2 AND id <= {BASE}"
ADDED = f"FROM journal WHERE (transaction, id) > (greatest($1::text::xid8, {_FIRST}), $2) AND {_SETTLED}"
IN_ORDER = "ORDER BY journal.transaction, id"

# The data set, whether it has not reached the position, and the last of the next $3 entries with their
# number.
_NEXT = Statement(
    sqlite="SELECT d.identity, true, ?2 > (SELECT coalesce(max(id), 0) FROM journal), d.is_whole, 0,"
    " d.gone_id, 0, 0, e.id, e.count FROM data_set d, (SELECT"
    f" max(id) AS id, count(*) AS count FROM (SELECT id {_IN_SQLITE} ORDER BY id LIMIT ?3)) e",
    postgres=f"SELECT d.identity, d.stamp = {_STAMP}, $1::text::xid8 >= {OLDEST}, d.is_whole,"
    " d.gone_transaction::text, d.gone_id, d.base_id, e.transaction::text, e.id, coalesce(e.count, 0)"
    " FROM data_set d LEFT JOIN (SELECT *, count(*) OVER ()"
    f" FROM (SELECT transaction, id {ADDED} {IN_ORDER} LIMIT $3) AS next"
    " ORDER BY transaction DESC, id DESC LIMIT 1) AS e ON true",
)
_NEXT_UP_TO_BASE = Statement(
    sqlite="SELECT NULL, 0",
    postgres=f"SELECT max(id), count(*) FROM (SELECT id {_UP_TO_BASE} AND $1::text = '0' ORDER BY id"
    " LIMIT $3) AS n",
)

# The account of an entry; null where it is of none.
OWNER = (
    "CASE subject WHEN 'account' THEN subject_id"
    " WHEN 'order' THEN (SELECT account_id FROM orders o WHERE o.id = journal.subject_id)"
    " WHEN 'key' THEN (SELECT account_id FROM api_keys k WHERE k.id = journal.subject_id)"
    " WHEN 'webhook' THEN (SELECT account_id FROM webhooks w WHERE w.id = journal.subject_id) END"
)
_TYPE = "subject || '.' || action"
_IS_SHARED = f"subject IN ({', '.join(map(repr, SHARED))})"
_IS_SEEN = f"({_IS_SHARED} OR $6::bigint IS NULL OR $6 = {OWNER})"
_IS_ASKED_FOR = f"strpos($5, ',' || {_TYPE} || ',') > 0 AND {_IS_SEEN}"
_IS_ASKED_FOR_IN_SQLITE = _IS_ASKED_FOR.replace("strpos", "instr").replace("::bigint", "").replace("$", "?")
# The first $7 events up to an end, $3 and $4, whose types are in $5 and that the account $6 sees.
_EVENTS = Statement(
    sqlite=f"SELECT {select(ENTRY)}, 0 {_IN_SQLITE} AND id <= ?4 AND {_IS_ASKED_FOR_IN_SQLITE}"
    " ORDER BY id LIMIT ?7",
    postgres=f"SELECT {select(ENTRY)}, transaction::text {ADDED}"
    f" AND (transaction, id) <= ($3::text::xid8, $4) AND {_IS_ASKED_FOR} {IN_ORDER} LIMIT $7",
)
_EVENTS_UP_TO_BASE = Statement(
    sqlite="SELECT 1 WHERE false",
    postgres=f"SELECT {select(ENTRY)}, '0' {_UP_TO_BASE} AND $1 = $3::text AND id <= $4 AND {_IS_ASKED_FOR}"
    " ORDER BY id LIMIT $7",
)

# What a removal has taken since is recorded here by now.
READ_GONE = Statement(
    "SELECT is_whole, 0, gone_id FROM data_set",
    "SELECT is_whole, gone_transaction::text, gone_id FROM data_set",
)
_SUMMARY = Statement(
    sqlite=f"SELECT 0, id, {_TYPE}, {_IS_SHARED}, {OWNER} {_IN_SQLITE} ORDER BY id LIMIT ?3",
    postgres=f"SELECT transaction::text, id, {_TYPE}, {_IS_SHARED}, {OWNER} {ADDED} {IN_ORDER} LIMIT $3",
)
# The position before the newest $1 entries; none where there are no more.
_BEFORE = Statement(
    sqlite="SELECT 0, id FROM journal ORDER BY id DESC LIMIT 1 OFFSET ?1",
    postgres="SELECT e.transaction::text, e.id FROM ((SELECT transaction, id FROM journal"
    f" WHERE transaction >= {_FIRST} AND {_SETTLED} {IN_ORDER.replace(', id', ' DESC, id DESC')}"
    f" LIMIT $1::bigint + 1) UNION ALL (SELECT '0'::xid8, id FROM journal WHERE id <= {BASE}"
    " ORDER BY id DESC LIMIT $1::bigint + 1)) AS e ORDER BY e.transaction DESC, e.id DESC LIMIT 1"
    " OFFSET $1::bigint",
)
_LOCK = Statement("SELECT 1", "LOCK TABLE journal IN SHARE ROW EXCLUSIVE MODE")
# Whether a journal that is not where its data set got its identity had a stamp at all. It has none
# before the first bookmark, and a copy of that time may come back later.
_IS_MOVED = Statement("SELECT true WHERE false", f"SELECT stamp <> '' FROM data_set WHERE stamp <> {_STAMP}")
RENEW = Statement(
    "UPDATE data_set SET identity = lower(hex(randomblob(6)))",
    "UPDATE data_set SET identity = left(replace(gen_random_uuid()::text, '-', ''), 12),"
    f" stamp = {_STAMP}, base_id = (SELECT coalesce(max(id), 0) FROM journal), base_transaction = {OLDEST},"
    " gone_transaction = '0'",  # entries up to the base are in the order of their ids
)


class _Next(NamedTuple):
    """The data set, and the end of the next entries."""

    identity: str
    is_unmoved: bool  # the journal is where it was when the data set got its identity
    is_ahead: bool  # the position is of what the data had before they were restored, or is made up
    is_whole: bool
    gone: Position
    base_id: int
    end: Position
    entries: int


class EntryPage(NamedTuple):
    """A page like an EventPage, of the entries with their positions."""

    entries: list[tuple[Entry, Position]]
    after: Bookmark
    is_behind: bool


class Events(Repository):
    """The journal of a store as events."""

    async def page(self, query: EventQuery) -> EventPage:
        """The next events. Raises EventsGone for a bookmark that the store can't continue, and without one
        unless the journal begins with the first animal."""
        page = await self.entries(query)
        seen = [(event_of(page.after.data_set, entry), position) for entry, position in page.entries]
        return EventPage(
            [event for event, _ in seen if event is not None],
            page.after,
            page.is_behind,
            positions=[position for event, position in seen if event is not None],
        )

    async def entries(self, query: EventQuery) -> EntryPage:
        """The next entries, of any types. Raises EventsGone as `page`."""
        while (page := await self._database.read(entries_after(query))) is None:
            await self._renew()
        return page

    async def newest(self, but: int = 0) -> Bookmark:
        """The bookmark of this moment: what commits later comes after it, and before that the newest `but`
        entries."""
        while (found := await self._database.read(_newest(but))) is None:
            await self._renew()
        return found

    async def latest(self, query: EventQuery, scan_max: int = ENTRIES_SCANNED_MAX) -> EventPage:
        """The newest events that match, in their order, of the newest `scan_max` entries and what comes
        meanwhile. The query's `after` is not used."""
        back, start = query.limit, await self.newest(query.limit)
        while True:
            found = deque[Event](maxlen=query.limit)
            page = EntryPage([], start, is_behind=True)
            while page.is_behind:
                page = await self.entries(replace(query, limit=ENTRIES_SCANNED_MAX, after=page.after))
                # The newest are made first: an event takes 10 µs to make, and most of them are too many.
                made = (event_of(page.after.data_set, entry) for entry, _ in reversed(page.entries))
                newest = islice((event for event in made if event is not None), query.limit)
                found.extend(reversed(list(newest)))
            if len(found) == query.limit or back >= scan_max:
                break
            back = min(back * 4, scan_max)
            before, start = start, await self.newest(back)
            if start == before:  # the journal has no more
                break
        return EventPage(list(found), page.after, is_behind=False)

    @read
    def summary_after(self, after: Position) -> Script[EntrySummary]:
        """What came after a position of this data set, of at most ENTRIES_SCANNED_MAX entries."""
        rows = yield _SUMMARY, (str(after.transaction), after.id, ENTRIES_SCANNED_MAX)
        types_and_owners = frozenset((row[2], None if row[3] else row[4]) for row in rows)
        return EntrySummary(types_and_owners, Position(int(rows[-1][0]), rows[-1][1]) if rows else after)

    @write(NO_EFFECT)
    def note_restore(self, now_ms: int, actor: str) -> Script[None]:
        """Say that the store was restored from a copy: earlier bookmarks end."""
        return restored(now_ms, actor)

    async def _renew(self) -> None:
        now_ms = self._clock.now_ms()
        await self._database.write(lambda: renew_if_moved(now_ms))


def entries_after(query: EventQuery) -> Script[EntryPage | None]:
    """The entries of events. None where the journal has moved. Raises EventsGone as `page`."""
    start = query.after.position if query.after else Position()
    found = yield from _next(start, ENTRIES_SCANNED_MAX)
    if not found.is_unmoved:
        return None
    _check(query.after, found)
    end, count, events = found.end, found.entries, _EVENTS
    if start.transaction == 0 and start.id < found.base_id:
        ((last_id, came),) = yield _NEXT_UP_TO_BASE, (str(start.transaction), start.id, ENTRIES_SCANNED_MAX)
        if came:
            end, events = Position(0, last_id), _EVENTS_UP_TO_BASE
            count = ENTRIES_SCANNED_MAX if found.entries else came  # then those that were added here
    if not count:
        return EntryPage([], Bookmark(found.identity, start), is_behind=False)
    kinds = f",{','.join(sorted(query.entry_types))},"
    span = str(start.transaction), start.id, str(end.transaction), end.id
    rows = yield events, (*span, kinds, query.account_id, query.limit)
    entries = [(read_entry(row[:-1]), Position(int(row[-1]), row[0])) for row in rows]
    last = entries[-1][1] if len(rows) == query.limit else end
    ((is_whole, gone_transaction, gone_id),) = yield READ_GONE, ()
    gone = Position(int(gone_transaction), gone_id)
    _check(query.after, found._replace(is_whole=bool(is_whole), gone=gone))
    return EntryPage(entries, Bookmark(found.identity, last), last < end or count == ENTRIES_SCANNED_MAX)


def _next(start: Position, limit: int) -> Script[_Next]:
    (row,) = yield _NEXT, (str(start.transaction), start.id, limit)
    identity, is_unmoved, is_ahead, is_whole, *gone_to, base_id, transaction, last_id, count = row
    end = Position(int(transaction), last_id) if count else start
    gone = Position(int(gone_to[0]), gone_to[1])
    return _Next(identity, bool(is_unmoved), bool(is_ahead), bool(is_whole), gone, base_id, end, count)


def _check(after: Bookmark | None, found: _Next) -> None:
    """Raise EventsGone for a bookmark that can't go on; without one, unless the beginning is there."""
    if after is None:
        reason = "" if found.is_whole else "The first events are not kept"
    elif after.data_set != found.identity or found.is_ahead:
        reason = "This bookmark is of another store, or of this one before it was restored from a copy"
    else:
        reason = (
            "" if after.position >= found.gone else "The events after this bookmark are not kept any more"
        )
    if reason:
        raise EventsGone(
            f"{reason}. Take a new bookmark with after=now, list the animals, then follow the events from it."
        )


def _newest(but: int) -> Script[Bookmark | None]:
    found = yield from _next(Position(), 1)
    if not found.is_unmoved:
        return None
    positions = [Position(int(transaction), last_id) for transaction, last_id in (yield _BEFORE, (but,))]
    return Bookmark(found.identity, max([found.gone, *positions]))


def newest_bookmark(now_ms: int) -> Script[Bookmark]:
    """The bookmark of this moment, in a transaction that writes."""
    while (found := (yield from _newest(0))) is None:
        yield from renew_if_moved(now_ms)
    return found


def check_bookmark(after: Bookmark) -> Script[None]:
    """Raise EventsGone for a bookmark that the store can't continue."""
    _check(after, (yield from _next(after.position, 1)))


def renew_if_moved(now_ms: int) -> Script[None]:
    """Make the data another set unless they are where they were before."""
    if not (yield _IS_MOVED, ()):
        return
    yield _LOCK, ()  # else a transaction that runs might add to what came, and another process renew again
    for (is_restored,) in (yield _IS_MOVED, ()):
        yield RENEW, ()
        if is_restored:
            yield from record(now_ms, SERVICE, STORE, 0, "restored", None, {})


def restored(now_ms: int, actor: str, after: dict[str, object] | None = None) -> Script[None]:
    """Other data are in the store: earlier bookmarks end, and the journal says so."""
    yield _LOCK, ()
    yield RENEW, ()
    yield from record(now_ms, actor, STORE, 0, "restored", None, after or {})
