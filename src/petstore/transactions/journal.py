"""The journal, for both databases: one entry for each change, in the change's transaction.

A page has the newest first, at a cost that does not grow with the journal. A subject has an index. Times are
found by halving the identifiers, which are nearly in the order of the times. Where neither leads to the
entries, a page reads a bounded number of them and says where it stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import msgspec

from petstore.core.accounts import read_account_id
from petstore.core.durations import HOUR_MS
from petstore.core.errors import AccountNotFound, PersonNotFound
from petstore.core.journal import CHANNELS, About, Entry, JournalPage, JournalQuery, ScanEnd, animals_of_list
from petstore.transactions.query import Query
from petstore.transactions.rows import ENTRY, read_entry, select
from petstore.transactions.script import Repository, Script, Statement, read, reads, statement

_RECORD = f"INSERT INTO journal ({select(ENTRY[1:])})"
RECORD = statement(f"{_RECORD} VALUES ($1, $2, $3, $4, $5, $6, $7)")
# The beginning for the animals of a list: the other columns follow, from the identifiers on.
RECORD_PETS = f"{_RECORD} SELECT CAST($1 AS bigint), CAST($2 AS text), 'pet'"

# In SQLite nobody else writes while a list is stored.
_BESIDE = Statement(
    "SELECT 1 WHERE false AND (?1, ?2) = (?3, ?4)",
    f"SELECT {select(ENTRY)} FROM journal WHERE id >= $1 AND id < $2 AND NOT (at_ms = $3 AND actor = $4)"
    " ORDER BY id DESC LIMIT 50",
)

# The entries of an account with more keys are searched for like an actor's.
_KEYS_MAX = 1_000

_COLUMNS = select(ENTRY)
_NAMED = {
    "account": (statement("SELECT id FROM accounts WHERE name = $1 OR id = $2"), AccountNotFound),
    "person": (statement("SELECT id FROM people WHERE name = $1 OR id = $2"), PersonNotFound),
}
_KEYS = statement("SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE account_id = $1 LIMIT $2) AS keys")
_NEWEST = statement("SELECT coalesce(max(id), 0) FROM journal")
_NEXT = statement("SELECT id, at_ms FROM journal WHERE id >= $1 ORDER BY id LIMIT 1")
_OF_ACCOUNT = "subject = 'account' AND subject_id = {}"
# As a CASE, so that SQLite does not look up all keys' entries in the index by subject; with a value for each
# entry, so that PostgreSQL does not collect the account's keys first.
_OF_MANY_KEYS = (
    "CASE subject WHEN 'account' THEN subject_id = {}"
    " WHEN 'key' THEN (SELECT account_id FROM api_keys k WHERE k.id = journal.subject_id) = {} ELSE false END"
)

# A struct stands for its members under their names in JSON.
Members = Mapping[str, object] | msgspec.Struct | None


def record(
    now_ms: int, actor: str, subject: str, subject_id: int, action: str, before: Members, after: Members
) -> Script[None]:
    """Add an entry; see core.journal.Entry."""
    yield RECORD, (now_ms, actor, subject, subject_id, action, encode(before), encode(after))


def record_changes(
    now_ms: int,
    actor: str,
    subject: str,
    subject_id: int,
    action: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> Script[None]:
    """Add an entry of the members that changed; none when nothing did."""
    old, new = _unlike(before, after), _unlike(after, before)
    if old or new:
        yield from record(now_ms, actor, subject, subject_id, action, old, new)


def _unlike(members: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """The members whose values differ in `others`."""
    return {name: value for name, value in members.items() if others.get(name) != value}


def encode(members: Members) -> str | None:
    """Members as the JSON of both databases; its bytes are the same in each."""
    return None if members is None else msgspec.json.encode(members).decode()


def page_of_journal(query: JournalQuery) -> Script[JournalPage]:
    """The entries that match, newest first; see core.journal. Raises AccountNotFound and PersonNotFound."""
    where = Query()
    first_id = yield from _between(query, where)
    account_id, has_many_keys, stop = None, False, None
    if query.about is not None and query.about.subject == "account":
        account_id = yield from _find(query.about)
        has_many_keys = (yield _KEYS, (account_id, _KEYS_MAX + 1))[0][0] > _KEYS_MAX
    elif query.about is not None and query.about.subject == "person":
        where.add("subject = 'person' AND subject_id = {}", (yield from _find(query.about)))
    elif query.about is not None:
        where.add("subject = {} AND subject_id = {}", query.about.subject, int(query.about.reference))
    if has_many_keys or (account_id is None and query.is_searched):
        stop = yield from _stop(query.scan_max, first_id, where)
    if stop is not None or first_id:  # one bound: of two SQLite walks to the first
        where.add("id >= {}", first_id if stop is None else stop.id)
    if has_many_keys:
        where.add(_OF_MANY_KEYS, account_id, account_id)
        account_id = None
    _filter(query, where)
    select_page = _select(where, query.limit + 1, account_id)
    entries = [read_entry(row) for row in (yield select_page, tuple(where.values))]
    if len(entries) > query.limit:
        return JournalPage(entries[: query.limit], has_more=True)
    return JournalPage(entries, has_more=False, scan_end=stop)


def _between(query: JournalQuery, where: Query) -> Script[int]:
    """The range of identifiers, whose beginning it returns: clocks may differ by an hour, so `_filter`
    compares the times too."""
    before_id = query.before_id
    if query.until_ms is not None:
        until_id = yield from first_since(query.until_ms + HOUR_MS)
        before_id = until_id if before_id is None else min(before_id, until_id)
    if before_id is not None:
        where.add("id < {}", before_id)
    return 0 if query.since_ms is None else (yield from first_since(query.since_ms - HOUR_MS))


def first_since(at_ms: int) -> Script[int]:
    """The identifier of the first entry from a time on, or the next one to come."""
    low, high = 1, (yield _NEWEST, ())[0][0] + 1
    while low < high:
        middle = (low + high) // 2
        rows = yield _NEXT, (middle,)
        if rows and rows[0][1] < at_ms:
            low = rows[0][0] + 1
        else:
            high = middle
    return low


def _find(about: About) -> Script[int]:
    """The id of an account or a person. Raises AccountNotFound and PersonNotFound."""
    find, missing = _NAMED[about.subject]
    for (found,) in (yield find, (about.reference, read_account_id(about.reference) or 0)):
        return int(found)
    raise missing(about.reference)


def _stop(scan_max: int, first_id: int, where: Query) -> Script[ScanEnd | None]:
    """The entry at which the search has to stop, if there are as many."""
    end = "AND id >= {} ORDER BY id DESC LIMIT 1 OFFSET {}"
    rows = yield where.select("SELECT id, at_ms FROM journal", end, first_id, scan_max - 1)
    return ScanEnd(*rows[0]) if rows else None


def _filter(query: JournalQuery, where: Query) -> None:
    """What no index serves."""
    if query.actor is not None:
        whole = [query.actor, *(f"{channel}:{query.actor}" for channel in CHANNELS)]
        begun = [f"{query.actor}:", f"{query.actor}/", f"api:{query.actor}/"]
        begins = " OR ".join("substr(actor, 1, {}) = {}" for _ in begun)
        lengths = chain(*((len(text), text) for text in begun))
        where.add(f"(actor IN ({', '.join('{}' for _ in whole)}) OR {begins})", *whole, *lengths)
    if query.since_ms is not None:
        where.add("at_ms >= {}", query.since_ms)
    if query.until_ms is not None:
        where.add("at_ms < {}", query.until_ms)


def _select(where: Query, limit: int, account_id: int | None) -> Statement:
    """The newest entries; of an account and its keys, which PostgreSQL has to ask one by one: for keys that
    it does not know it may read the whole journal instead."""
    if account_id is None:
        return statement(f"{_from(where.text)} ORDER BY id DESC LIMIT {where.put(limit)}")
    account, end = where.put(account_id), f"ORDER BY id DESC LIMIT {where.put(limit)}"
    of_account = _from(f"{_OF_ACCOUNT.format(account)} AND {where.text}")
    of_keys = f"subject = 'key' AND {where.text} AND subject_id"
    keys = f"FROM api_keys WHERE account_id = {account}"
    return Statement(
        statement(f"{of_account} UNION ALL {_from(of_keys)} IN (SELECT id {keys}) {end}").sqlite,
        f"({of_account} {end}) UNION ALL (SELECT entry.* FROM (SELECT id AS key_id {keys} OFFSET 0) AS k"
        f" CROSS JOIN LATERAL ({_from(of_keys)} = key_id {end}) AS entry) {end}",
    )


def _from(conditions: str) -> str:
    return f"SELECT {_COLUMNS} FROM journal WHERE {conditions}"


class Journal(Repository):
    """The journal of a store."""

    page = reads(page_of_journal)

    @read
    def beside(self, finished: Entry) -> Script[list[Entry]]:
        """The newest 50 entries that others wrote while a list was stored, among those of its animals."""
        among = finished.id - animals_of_list(finished), finished.id, finished.at_ms, finished.actor
        return [read_entry(row) for row in (yield _BESIDE, among)]
